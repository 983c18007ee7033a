"""Izzy's own test of what the builder hands in: its examples in fresh sandboxes, with the permissions it declares."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from apps.accounts.secrets import secret_values
from apps.agent.scrub import Scrubber
from apps.builder.workshop.showing import ends
from apps.capabilities.drafts import MAIN, Draft
from apps.capabilities.sandbox import run_capability
from apps.capabilities.sandbox.base import Outcome, Purpose, RunError, SandboxSpec
from apps.core.database import in_db

ERROR_CHARS = 3_000
SHOWN_CHARS = 1_000
LOADED = "handed_in_tool"
LOADER = f"import {LOADED}\n\n\ndef run(args):\n    return str({LOADED}.run)\n"
NOT_YET = "Secrets and network are not there while it is loaded: use them in run alone."


async def failed_example(*, user_id: UUID, draft: Draft, environment: Mapping[str, str]) -> str:
    """Why the first example that fails does; "" where all give what they should.

    Each runs in a sandbox of its own that reaches the declared hosts, all of which the user must have allowed;
    `environment` are the allowed secrets, whose values are not in what is returned. Raises SandboxUnavailable.
    """
    for number, example in enumerate(draft.examples, start=1):
        spec = SandboxSpec(
            user_id=user_id,
            purpose=Purpose.RUN,
            hosts=frozenset(draft.hosts),
            env=environment,
            requirements=draft.requirements,
            secrets=await in_db(secret_values, user_id),
        )
        outcome = await run_capability(spec, {MAIN: draft.main}, dict(example["input"]))
        outcome = await in_db(_scrubbed, user_id, outcome, environment)
        if problem := example_problem(example, outcome):
            shown = ends(json.dumps(example["input"], ensure_ascii=False), SHOWN_CHARS)
            return f"Example {number} with input {shown} failed in a fresh sandbox. {problem}"
    return ""


async def load_problem(*, user_id: UUID, draft: Draft) -> str:
    """Why the tool cannot even be loaded, with its packages but without network and secrets; "" where it can. For what
    cannot be tried yet because the user has not allowed all of it. Raises SandboxUnavailable."""
    secrets = await in_db(secret_values, user_id)
    spec = SandboxSpec(user_id=user_id, purpose=Purpose.RUN, requirements=draft.requirements, secrets=secrets)
    outcome = await run_capability(spec, {MAIN: LOADER, f"{LOADED}.py": draft.main}, {})
    if outcome.ok:
        return ""
    problem = example_problem({}, outcome).replace(LOADED, "main")
    return f"It cannot be loaded in a fresh sandbox. {problem}\n{NOT_YET}"


def _scrubbed(user_id: UUID, outcome: Outcome, environment: Mapping[str, str]) -> Outcome:
    """Before anything of it is cut: half a secret would not be found."""
    scrubber = Scrubber([*secret_values(user_id), *environment.values()])
    error = outcome.error
    return replace(
        outcome,
        result=None if outcome.result is None else scrubber.text(outcome.result),
        error=error and RunError(error.code, scrubber.text(error.message)),
    )


def example_problem(example: dict[str, Any] | Any, outcome: Outcome) -> str:
    """The problem with an example's outcome; "" where it is as expected."""
    if not outcome.ok or outcome.result is None:
        error = outcome.error
        return f"{error.code}: {ends(error.message, ERROR_CHARS)}" if error else "It gave no result."
    if not outcome.result.strip():
        return "Its result is empty: run must return text that tells the user something."
    expected = example.get("expect")
    if expected is not None and str(expected) not in outcome.result:
        return f"Its result should contain {expected!r} but is: {ends(outcome.result, SHOWN_CHARS)}"
    return ""
