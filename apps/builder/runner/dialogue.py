"""The builder's talk with its model: the brief that begins it, where it is kept, and the checks between its rounds."""

import json
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.agent.turn.loop import TurnState, TurnTaken
from apps.builder.builds.running import dialogue_add
from apps.builder.models import Build, DialogueMessage, Kind
from apps.builder.workspace.context import Workshop, is_install
from apps.capabilities.catalog.drafts import MAIN, REQUIREMENTS, RUN_MD
from apps.capabilities.catalog.selectors import capability_get, version_waiting
from apps.capabilities.catalog.versions import draft_of
from apps.capabilities.models import Execution
from apps.core.db.pool import in_db

MAX_FAILURE_CHARS = 6_000
NO_SCHEMA = "none was given. Design one from the description, and hand it in as input_schema."


@cache
def _prompt() -> str:
    return (Path(__file__).parent.parent / "prompts" / "builder.md").read_text(encoding="utf-8").strip()


def system_prompt(*, rounds: int) -> str:
    """The same text for every build, so that it stays cached."""
    return _prompt().replace("{rounds}", str(rounds))


@dataclass(frozen=True, slots=True)
class Brief:
    """The first message, and the files that lie in the sandbox from the start."""

    text: str
    files: dict[str, str]


def brief_for(build: Build) -> Brief:
    """Reads the current version, where there is one, and the failed run of a repair."""
    lines = [
        "Build this tool." if build.kind == Kind.NEW else "Make a new version of this tool.",
        f"Name: {build.name}",
        f"Description: {build.description}",
        f"Input schema: {_schema(build)}",
    ]
    if build.request:
        lines.append(f"The user had said: <said>{build.request}</said>")
    if build.feedback:
        lines.append(f"What to do differently: <feedback>{build.feedback}</feedback>")
    run = _failed_run(build)
    files = _present_files(build, run)
    if run is not None:
        lines += _failure(run)
    if files:
        lines.append("These files of its present version lie in the sandbox:")
        lines += [f"--- {name}\n{text}" for name, text in files.items() if text.strip()]
    return Brief("\n\n".join(lines), files)


def _schema(build: Build) -> str:
    """Builds asked for on the builds page have none."""
    given = build.kind != Kind.NEW or bool(build.input_schema.get("properties"))
    return json.dumps(build.input_schema, ensure_ascii=False) if given else NO_SCHEMA


def _failed_run(build: Build) -> Execution | None:
    if build.execution_id is None:
        return None
    return Execution.objects.for_user(build.user_id).filter(pk=build.execution_id).first()


def _present_files(build: Build, run: Execution | None) -> dict[str, str]:
    """Those of the newest version: one that waits beside the current one is what the user saw last. For a repair those of
    the version that failed, where it is one of the two."""
    capability = capability_get(build.user_id, build.name)
    if capability.current is None:
        return {}
    waiting = version_waiting(capability)
    meant = waiting is not None and (run is None or run.version == waiting.number)
    draft = draft_of(capability, waiting if meant else None)
    parts = {MAIN: draft.main, REQUIREMENTS: draft.requirements, RUN_MD: draft.run_md}
    examples = {"examples.json": json.dumps(list(draft.examples), ensure_ascii=False, indent=1)}
    return {name: text for name, text in (parts | examples).items() if text.strip()}


def _failure(run: Execution) -> list[str]:
    said = [
        "It failed on this input; find out why and correct it. Use this input as one of the examples where it makes sense.",
        f"Input: {json.dumps(run.input, ensure_ascii=False)[:MAX_FAILURE_CHARS]}",
        f"Error ({run.error_code}): {run.error_message[-MAX_FAILURE_CHARS:]}",
    ]
    output = (run.stdout + run.stderr).strip()
    return [*said, f"It printed: {output[-MAX_FAILURE_CHARS:]}"] if output else said


class OverBudget(Exception):
    """The build has used up its tokens."""


class NoSandbox(Exception):
    """There is no sandbox to build in; the message says why."""


@dataclass
class DialogueStore:
    """`TurnStore` of a build, as this process has read it. Each message is committed when its method returns; then the build
    may end."""

    build: Build
    state: TurnState
    shop: Workshop

    async def save_assistant(self, blocks: list[dict[str, Any]], stop_reason: str, round: int) -> None:
        await self.add("assistant", blocks, round, stop_reason)

    async def save_tool_results(self, blocks: list[dict[str, Any]], round: int) -> None:
        """Raises NoSandbox, OverBudget."""
        await self.add("user", blocks, round)
        if self.shop.bench.unavailable:
            raise NoSandbox(self.shop.bench.unavailable)
        usage = self.state.usage
        used = usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        if used >= settings.IZZY_BUILD_TOKENS:
            raise OverBudget

    async def add(self, role: str, blocks: list[dict[str, Any]], round: int, stop_reason: str = "") -> None:
        add = partial(
            dialogue_add,
            build=self.build,
            role=role,
            blocks=blocks,
            round=round,
            stop_reason=stop_reason,
        )
        if not await in_db(add):
            raise TurnTaken


@dataclass(frozen=True, slots=True)
class Dialogue:
    """The dialogue so far in the shape of the Messages API, and what a new sandbox needs of it."""

    messages: list[dict[str, Any]]
    rounds: int
    stop_reason: str
    files: dict[str, str]
    installs: list[str]


def dialogue_read(build: Build) -> Dialogue:
    """The stored talk of a build that goes on after a restart."""
    rows = DialogueMessage.objects.for_user(build.user_id).filter(build=build).order_by("position")
    messages: list[dict[str, Any]] = []
    rounds, stop_reason = 0, ""
    for row in rows:
        messages.append({"role": row.role, "content": json.loads(row.blocks)})
        if row.role == "assistant":
            rounds, stop_reason = row.round, row.stop_reason
    files, installs = _made(messages)
    return Dialogue(messages, rounds, stop_reason, files, installs)


def _made(messages: list[dict[str, Any]]) -> tuple[dict[str, str], list[str]]:
    """Files and packages by the calls that succeeded, in order."""
    done = {
        block["tool_use_id"]
        for message in messages
        for block in message["content"]
        if block["type"] == "tool_result" and not block.get("is_error")
    }
    files: dict[str, str] = {}
    installs: list[str] = []
    for message in messages:
        for block in message["content"]:
            if block["type"] != "tool_use" or block["id"] not in done:
                continue
            given = block["input"]
            if block["name"] == "write_file":
                files[str(given["path"])] = str(given["content"])
            elif block["name"] == "run_command" and is_install(str(given["command"])):
                installs.append(str(given["command"]))
    return files, installs
