"""The tool with which the builder hands in its work: checked, tried by Izzy itself, and only then a capability."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from uuid import UUID

from django.conf import settings

from apps.accounts.secrets import secret_get, secret_values
from apps.agent.tools.base import Tier, ToolFailure, tool
from apps.agent.tools.results import Scrubber, result_json
from apps.builder.builds.ending import (
    asked_among_others,
    build_succeed,
    others_spoke,
    registered,
    secrets_allowed,
)
from apps.builder.models import Build
from apps.builder.workspace.context import BuildContext
from apps.builder.workspace.tools import ends
from apps.capabilities.catalog.drafts import MAIN, REQUIREMENTS, RUN_MD, Draft, clean_draft
from apps.capabilities.catalog.schemas import clean_schema, with_words_of
from apps.capabilities.catalog.selectors import version_waiting
from apps.capabilities.runs.examples import result_problem
from apps.capabilities.sandbox.base import Purpose, SandboxSpec, SandboxUnavailable
from apps.capabilities.sandbox.running import run_capability
from apps.core.db.pool import in_db
from apps.core.errors import IzzyError

REGISTER_SECONDS = 1_200
MAX_EXAMPLES = 5
ERROR_CHARS = 3_000
SHOWN_CHARS = 1_000
LOADED = "handed_in_tool"
LOADER = f"import {LOADED}\n\n\ndef run(args):\n    return str({LOADED}.run)\n"
NOT_YET = "Secrets and network are not there while it is loaded: use them in run alone."
REFUSED = "Not registered. {reason} Correct it, try it with run_code, and register again."
NO_FIELDS = (
    "The input schema names no fields, but example {number} gives {names}: hand in an input_schema with properties that "
    "describe each field."
)
NOT_ASKED = "You have not asked for {hosts} yet. Call request_network first, then register; or leave these hosts out."
DECLINED = "The user declined {names}. Do not ask again: build it without, or end with what is missing."
TEXTS = {"type": "array", "items": {"type": "string"}, "maxItems": 20}


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    name: str | None = None
    description: Annotated[str, "One paragraph: when to use the tool and what it gives."] = ""
    input_schema: Annotated[
        dict[str, Any] | None, "JSON schema of run's args; the one asked for where left out."
    ] = None
    output_schema: Annotated[
        dict[str, Any] | None, "That it has stays where left out and results fit it."
    ] = None
    files: Annotated[
        dict[str, str] | None,
        {
            "properties": {name: {"type": "string"} for name in (MAIN, REQUIREMENTS, RUN_MD)},
            "additionalProperties": False,
        },
    ] = None
    examples: Annotated[
        list[dict[str, Any]],
        {
            "minItems": 1,
            "maxItems": MAX_EXAMPLES,
            "items": {
                "type": "object",
                "properties": {"input": {"type": "object"}, "expect": {"type": "string"}},
                "required": ["input"],
                "additionalProperties": False,
            },
        },
    ]
    permissions: Annotated[
        dict[str, list[str]] | None,
        {"properties": {"hosts": TEXTS, "secrets": TEXTS}, "additionalProperties": False},
    ] = None
    tags: Annotated[list[str] | None, TEXTS, "Those that it has stay where left out."] = None


@tool(
    tier=Tier.SIDE_EFFECTING,
    timeout=max(REGISTER_SECONDS, settings.IZZY_BUILD_SECONDS),
    done="Handed it in",
)
async def register_capability(context: BuildContext, arguments: Register) -> str:
    """Hand in the finished tool. Izzy runs the examples itself in a fresh sandbox with the permissions you declare, secrets included
    where the user allows them; if one fails you get the reason and can correct it. Files you do not give are taken
    from the sandbox (main.py, requirements.txt, RUN.md)."""
    try:
        if arguments.name not in (None, context.name):
            raise ToolFailure(f"This build is for {context.name}; it can register nothing else.")
        build = await in_db(_build, context.build_id)
        draft = await _draft(context, arguments, build)
        await context.mailbox.progress("Checking it in a fresh sandbox", "verifying")
        results = await _results(context, draft, build)
        if arguments.output_schema is None and not _have_shape(results or [], dict(draft.output_schema)):
            draft = replace(draft, output_schema={})
        tested = results is not None
        version = await in_db(lambda: build_succeed(build=_build(build.pk), draft=draft, tested=tested))
        if version is None:
            raise ToolFailure("This build has ended.")
    except (IzzyError, ToolFailure) as error:
        if isinstance(error, SandboxUnavailable):
            context.sandbox.unavailable = error.message
        reason = error.message if isinstance(error, IzzyError) else str(error)
        text = await context.noted(REFUSED.format(reason=reason))
        raise await context.failed(text, "The check found a mistake; correcting it") from error
    return registered(version, tested=tested)


async def _draft(context: BuildContext, arguments: Register, build: Build) -> Draft:
    """Returns what is handed in, cleaned. Raises ToolFailure where it asks for hosts in vain, or the assistant could not know what to
    give."""
    files, permissions = arguments.files or {}, arguments.permissions or {}
    main = files.get(MAIN) or await _written(context, MAIN)
    if not main:
        raise ToolFailure(f"There is no {MAIN}. Write it first.")
    description, schema = await in_db(_described, arguments, build)
    # The version whose files the builder was given.
    before = await in_db(lambda: version_waiting(build.capability) or build.capability)
    draft = clean_draft(
        Draft(
            description=description,
            input_schema=schema,
            output_schema=before.output_schema
            if arguments.output_schema is None
            else arguments.output_schema,
            main=main,
            requirements=await _handed_in(context, files, REQUIREMENTS),
            run_md=await _handed_in(context, files, RUN_MD),
            tags=before.tags if arguments.tags is None else arguments.tags,
            hosts=permissions.get("hosts") or (),
            secrets=permissions.get("secrets") or (),
            examples=arguments.examples,
        )
    )
    for number, example in enumerate(draft.examples, start=1):
        if example["input"] and not draft.input_schema.get("properties"):
            raise ToolFailure(NO_FIELDS.format(number=number, names=", ".join(example["input"])))
    missing = set(draft.hosts) - context.sandbox.hosts
    if refused := sorted(missing & context.declined):
        raise ToolFailure(f"The user declined {', '.join(refused)}. Build it without.")
    if context.network == "never" and missing:
        raise ToolFailure("The user's settings allow builds no network. Leave the hosts out.")
    if unasked := sorted(missing - context.unanswered):
        raise ToolFailure(NOT_ASKED.format(hosts=", ".join(unasked)))
    return draft


async def _handed_in(context: BuildContext, files: Mapping[str, str], name: str) -> str:
    """The file that was given, also an empty one, else that in the sandbox."""
    return files[name] if name in files else await _written(context, name)


async def _written(context: BuildContext, name: str) -> str:
    """The file as it is in the sandbox now: a command may have written, changed or removed it. "" where there is none."""
    sandbox = context.sandbox
    if not sandbox.is_open and name not in sandbox.files:
        return ""
    result = await sandbox.run_command(f"cat {name}", seconds=20)
    if result.error is not None:
        return sandbox.files.get(name, "")
    return result.stdout if result.ok else ""


def _described(arguments: Register, build: Build) -> tuple[str, dict[str, Any]]:
    """`(description, input schema)`, which stand in every conversation: once others spoke, their words are those that were asked for,
    and where it was asked among others' words all of it, as the user's yes was given to that."""
    schema = arguments.input_schema or build.input_schema
    if not others_spoke(build):
        return arguments.description or build.description, schema
    if asked_among_others(build):
        return build.description, build.input_schema
    return build.description, with_words_of(build.input_schema, clean_schema(schema))


async def _results(context: BuildContext, draft: Draft, build: Build) -> list[str] | None:
    """Returns what the examples gave, all of which have passed; None where they cannot be run yet, since the user has not allowed all
    that the draft declares: then it is loaded alone, with its packages. Raises ToolFailure with what is wrong."""
    run = SandboxSpec(user_id=context.user_id, purpose=Purpose.RUN, requirements=draft.requirements)
    hosts_missing = bool(set(draft.hosts) - context.sandbox.hosts)
    if hosts_missing or not secrets_allowed(build, draft):
        loader = {MAIN: LOADER, f"{LOADED}.py": draft.main}
        _, problem = await _tried(run, loader, {"input": {}})
        if problem:
            problem = problem.replace(LOADED, "main")
            raise ToolFailure(f"It cannot be loaded in a fresh sandbox. {problem}\n{NOT_YET}")
    environment = None if hosts_missing else await _environment(context, draft)
    if environment is None:
        await context.mailbox.progress(
            "It will be tested when you have allowed what it needs", "verifying"
        )
        return None
    run = replace(run, hosts=frozenset(draft.hosts), env=environment)
    results = []
    for number, example in enumerate(draft.examples, start=1):
        result, problem = await _tried(run, {MAIN: draft.main}, example)
        if problem:
            shown = ends(json.dumps(example["input"], ensure_ascii=False), SHOWN_CHARS)
            raise ToolFailure(
                f"Example {number} with input {shown} failed in a fresh sandbox. {problem}"
            )
        results.append(result)
    return results


def _have_shape(results: Sequence[str], schema: dict[str, Any]) -> bool:
    from apps.agent.tools.schema import schema_error  # loading jsonschema takes a tenth of a second

    return not schema or not any(schema_error(schema, result_json(result)) for result in results)


async def _tried(
    run: SandboxSpec, files: Mapping[str, str], example: Mapping[str, Any]
) -> tuple[str, str]:
    """Returns what an example gives in a sandbox of its own, and why it fails, both without any secret; the latter is "" where it
    does not. Raises SandboxUnavailable."""
    secrets = await in_db(secret_values, run.user_id)
    outcome = await run_capability(replace(run, secrets=secrets), files, dict(example["input"]))
    # Before anything is cut: half a secret would not be found.
    scrubber = Scrubber([*await in_db(secret_values, run.user_id), *run.env.values()])
    if outcome.error is not None:
        return "", f"{outcome.error.code}: {ends(scrubber.text(outcome.error.message), ERROR_CHARS)}"
    result = scrubber.text(outcome.result or "")
    return result, result_problem(result, example.get("expect"))


async def _environment(context: BuildContext, draft: Draft) -> dict[str, str] | None:
    """The values of the draft's secrets; None where one is not allowed, not stored, or cannot be read. Asks for those that are
    not allowed yet, once for the same secrets and hosts. The builder's model learns whether the user said yes, never a
    value. Raises ToolFailure where the user declined."""
    if not draft.secrets:
        return {}
    values = await in_db(_allowed_values, context.build_id, draft)
    asked = frozenset(draft.secrets), frozenset(draft.hosts)
    if values is None and context.declined_secrets & asked[0]:
        raise ToolFailure(DECLINED.format(names=", ".join(draft.secrets)))
    if values is None and asked not in context.asked_secrets:
        context.asked_secrets.add(asked)
        names = ", ".join(draft.secrets)
        question = {
            "kind": "secrets",
            "secrets": list(draft.secrets),
            "hosts": list(draft.hosts),
            "text": f"May it use your secret {names}?",
        }
        answer = await context.mailbox.ask(question)
        if answer is not None and answer.get("decision") != "allow":
            context.declined_secrets |= asked[0]
            raise ToolFailure(DECLINED.format(names=names))
        values = await in_db(_allowed_values, context.build_id, draft)
    return values if values and all(values.values()) else None


def _allowed_values(build_id: UUID, draft: Draft) -> dict[str, str] | None:
    """The values of the draft's secrets, "" for one that is not stored or cannot be read; None where one is not allowed."""
    build = _build(build_id)
    if not secrets_allowed(build, draft):
        return None
    return {name: secret_get(name, user_id=build.user_id) for name in draft.secrets}


def _build(build_id: UUID) -> Build:
    return Build.objects.unscoped().select_related("capability").get(pk=build_id)
