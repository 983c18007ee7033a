"""The tool with which the builder hands in its work: checked, tried by Izzy itself, and only then a capability."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any
from uuid import UUID

from django.conf import settings

from apps.accounts.secrets import secret_get, secret_values
from apps.agent.tools.base import Tier, ToolFailure, tool
from apps.agent.tools.scrub import Scrubber
from apps.builder.builds.ending import build_succeed, others_spoke, registered, secrets_allowed
from apps.builder.models import Build
from apps.builder.workspace.context import Workshop
from apps.builder.workspace.tools import ends
from apps.capabilities.catalog.drafts import MAIN, REQUIREMENTS, RUN_MD, Draft, clean_draft
from apps.capabilities.models import CapabilityVersion
from apps.capabilities.sandbox.base import Purpose, RunError, RunResult, SandboxSpec, SandboxUnavailable
from apps.capabilities.sandbox.running import run_capability
from apps.core.db.pool import in_db
from apps.core.errors import IzzyError

WISH = "May it use your secret {names}?"
DECLINED = "The user declined {names}. Do not ask again: build it without, or end with what is missing."


@dataclass(frozen=True, slots=True)
class Allowed:
    """`complete` where all that the draft declares is allowed and at hand, so that its examples can be run as they will be
    later. `environment` has the values of its secrets by name."""

    complete: bool
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)


def is_undecided(shop: Workshop, build: Build, draft: Draft) -> bool:
    """Whether something that the draft declares is not allowed yet."""
    return bool(set(draft.hosts) - shop.bench.hosts) or not secrets_allowed(build, draft)


async def allowed_for(shop: Workshop, draft: Draft) -> Allowed:
    """Asks for secrets that are not allowed yet, once for the same wish. Raises ToolFailure where the user declined."""
    if set(draft.hosts) - shop.bench.hosts:
        return Allowed(complete=False)
    if not draft.secrets:
        return Allowed(complete=True)
    if not await in_db(_granted, shop.build_id, draft):
        await _ask(shop, draft)
    environment = await in_db(_environment, shop, draft)
    return Allowed(complete=bool(environment), environment=environment)


async def _ask(shop: Workshop, draft: Draft) -> None:
    names = ", ".join(draft.secrets)
    if shop.declined_secrets & set(draft.secrets):
        raise ToolFailure(DECLINED.format(names=names))
    wish = frozenset(draft.secrets), frozenset(draft.hosts)
    if wish in shop.asked_secrets:
        return
    shop.asked_secrets.add(wish)
    question = {
        "kind": "secrets",
        "secrets": list(draft.secrets),
        "hosts": list(draft.hosts),
        "text": WISH.format(names=names),
    }
    answer = await shop.post.ask(question, seconds=shop.answer_seconds)
    if answer is not None and answer.get("decision") != "allow":
        shop.declined_secrets |= set(draft.secrets)
        raise ToolFailure(DECLINED.format(names=names))


def _granted(build_id: UUID, draft: Draft) -> bool:
    return secrets_allowed(Build.objects.unscoped().get(pk=build_id), draft)


def _environment(shop: Workshop, draft: Draft) -> dict[str, str]:
    """The values of the allowed secrets; empty where one is not allowed, not stored, or cannot be read."""
    if not _granted(shop.build_id, draft):
        return {}
    values = {name: secret_get(name, user_id=shop.user_id) for name in draft.secrets}
    return values if all(values.values()) else {}


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


def _scrubbed(user_id: UUID, outcome: RunResult, environment: Mapping[str, str]) -> RunResult:
    """Before anything of it is cut: half a secret would not be found."""
    scrubber = Scrubber([*secret_values(user_id), *environment.values()])
    error = outcome.error
    return replace(
        outcome,
        result=None if outcome.result is None else scrubber.text(outcome.result),
        error=error and RunError(error.code, scrubber.text(error.message)),
    )


def example_problem(example: dict[str, Any] | Any, outcome: RunResult) -> str:
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


REGISTER_SECONDS = 1_200
MAX_EXAMPLES = 5
REFUSED = "Not registered. {reason} Correct it, try it with run_code, and register again."
NO_FIELDS = (
    "The input schema names no fields, but example {number} gives {names}: hand in an input_schema with properties that "
    "describe each field."
)
NOT_ASKED = (
    "You have not asked for {hosts} yet. Call request_network first, then register; or leave these hosts out."
)
TEXTS = {"type": "array", "items": {"type": "string"}, "maxItems": 20}


@dataclass(frozen=True, slots=True, kw_only=True)
class Register:
    name: str | None = None
    description: Annotated[str, "One paragraph: when to use the tool and what it gives."] = ""
    input_schema: Annotated[
        dict[str, Any] | None, "JSON schema of run's args; the one asked for where left out."
    ] = None
    output_schema: dict[str, Any] | None = None
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
    tags: Annotated[list[str] | None, TEXTS] = None


@tool(tier=Tier.SIDE_EFFECTING, timeout=max(REGISTER_SECONDS, settings.IZZY_BUILD_SECONDS))
async def register_capability(shop: Workshop, arguments: Register) -> str:
    """Hand in the finished tool. Izzy runs the examples itself in a fresh sandbox with the permissions you declare, secrets included
    where the user allows them; if one fails you get the reason and can correct it. Files you do not give are taken
    from the sandbox (main.py, requirements.txt, RUN.md)."""
    try:
        return await _registered(shop, arguments)
    except (IzzyError, ToolFailure) as error:
        if isinstance(error, SandboxUnavailable):
            shop.bench.unavailable = error.message
        reason = error.message if isinstance(error, IzzyError) else str(error)
        text = await shop.noted(REFUSED.format(reason=reason))
        await shop.failed(text)
        await shop.post.progress("The check found a mistake; correcting it", "testing")
        raise ToolFailure(text) from error


async def _registered(shop: Workshop, arguments: Register) -> str:
    if arguments.name not in (None, shop.name):
        raise ToolFailure(f"This build is for {shop.name}; it can register nothing else.")
    draft = await _draft(shop, arguments)
    _check_hosts(shop, draft)
    await shop.post.progress("Checking it in a fresh sandbox", "verifying")
    tested = await _tested(shop, draft)
    version = await in_db(partial(_succeed, shop, draft, tested))
    if version is None:
        raise ToolFailure("This build has ended.")
    return registered(version, tested=tested)


async def _tested(shop: Workshop, draft: Draft) -> bool:
    """Whether the examples have passed; False where they cannot be run yet, since the user has not allowed all that the
    draft declares. Raises ToolFailure with what is wrong."""
    build = await in_db(lambda: Build.objects.unscoped().get(pk=shop.build_id))
    if is_undecided(shop, build, draft) and (
        problem := await load_problem(user_id=shop.user_id, draft=draft)
    ):
        raise ToolFailure(problem)
    allowed = await allowed_for(shop, draft)
    if not allowed.complete:
        await shop.post.progress("It will be tested when you have allowed what it needs", "verifying")
        return False
    problem = await failed_example(user_id=shop.user_id, draft=draft, environment=allowed.environment)
    if problem:
        raise ToolFailure(problem)
    return True


async def _draft(shop: Workshop, arguments: Register) -> Draft:
    files, permissions = arguments.files or {}, arguments.permissions or {}
    build = await in_db(lambda: Build.objects.unscoped().get(pk=shop.build_id))
    main = files.get(MAIN) or await _written(shop, MAIN)
    if not main:
        raise ToolFailure(f"There is no {MAIN}. Write it first.")
    # What it says of itself stands in every conversation: once others spoke, that is what the user's yes was given to.
    own = None if await in_db(others_spoke, build) else arguments
    draft = Draft(
        description=(own and own.description) or build.description,
        input_schema=(own and own.input_schema) or build.input_schema,
        output_schema=arguments.output_schema or {},
        main=main,
        requirements=files.get(REQUIREMENTS) or await _written(shop, REQUIREMENTS),
        run_md=files.get(RUN_MD) or await _written(shop, RUN_MD),
        tags=arguments.tags or (),
        hosts=permissions.get("hosts") or (),
        secrets=permissions.get("secrets") or (),
        examples=arguments.examples,
    )
    return _usable(clean_draft(draft))


async def _written(shop: Workshop, name: str) -> str:
    """The file as it is in the sandbox now: a command may have written or changed it. "" where there is none."""
    bench = shop.bench
    if not bench.is_open and name not in bench.files:
        return ""
    result = await bench.run_command(f"cat {name}", seconds=20)
    return result.stdout if result.ok and result.stdout.strip() else bench.files.get(name, "")


def _check_hosts(shop: Workshop, draft: Draft) -> None:
    missing = set(draft.hosts) - shop.bench.hosts
    if refused := sorted(missing & shop.declined):
        raise ToolFailure(f"The user declined {', '.join(refused)}. Build it without.")
    if shop.network == "never" and missing:
        raise ToolFailure("The user's settings allow builds no network. Leave the hosts out.")
    if unasked := sorted(missing - shop.unanswered):
        raise ToolFailure(NOT_ASKED.format(hosts=", ".join(unasked)))


def _usable(draft: Draft) -> Draft:
    """Raises ToolFailure where the assistant could not know what to give."""
    for number, example in enumerate(draft.examples, start=1):
        if example["input"] and not draft.input_schema.get("properties"):
            raise ToolFailure(NO_FIELDS.format(number=number, names=", ".join(example["input"])))
    return draft


def _succeed(shop: Workshop, draft: Draft, tested: bool) -> CapabilityVersion | None:
    build = Build.objects.unscoped().get(pk=shop.build_id)
    return build_succeed(build=build, draft=draft, tested=tested)
