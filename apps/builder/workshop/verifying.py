"""Izzy's own test of what the builder hands in: its examples in fresh sandboxes, with the permissions it declares."""

import json
from typing import Any
from uuid import UUID

from apps.builder.workshop.showing import ends
from apps.capabilities.drafts import MAIN, Draft
from apps.capabilities.sandbox import run_capability
from apps.capabilities.sandbox.base import Outcome, Purpose, SandboxSpec

ERROR_CHARS = 3_000
SHOWN_CHARS = 1_000


async def failed_example(*, user_id: UUID, draft: Draft, hosts: frozenset[str]) -> str:
    """Why the first example that fails does; "" where all give what they should.

    Each runs in a sandbox of its own, without secrets, reaching those of the declared hosts that the user has allowed
    (`hosts`). Raises SandboxUnavailable.
    """
    for number, example in enumerate(draft.examples, start=1):
        spec = SandboxSpec(
            user_id=user_id,
            purpose=Purpose.RUN,
            hosts=frozenset(draft.hosts) & hosts,
            requirements=draft.requirements,
        )
        outcome = await run_capability(spec, {MAIN: draft.main}, dict(example["input"]))
        if problem := example_problem(example, outcome):
            shown = ends(json.dumps(example["input"], ensure_ascii=False), SHOWN_CHARS)
            return f"Example {number} with input {shown} failed in a fresh sandbox. {problem}"
    return ""


def example_problem(example: dict[str, Any] | Any, outcome: Outcome) -> str:
    """What is wrong with the outcome of an example; "" where it is as expected."""
    if not outcome.ok or outcome.result is None:
        error = outcome.error
        return f"{error.code}: {ends(error.message, ERROR_CHARS)}" if error else "It gave no result."
    if not outcome.result.strip():
        return "Its result is empty: run must return text that tells the user something."
    expected = example.get("expect")
    if expected is not None and str(expected) not in outcome.result:
        return f"Its result should contain {expected!r} but is: {ends(outcome.result, SHOWN_CHARS)}"
    return ""
