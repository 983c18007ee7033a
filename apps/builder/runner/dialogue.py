"""The builder's talk with its model: the brief that begins it, where it is kept, and the checks between its rounds."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.agent.turn.loop import LoopState, TurnTaken
from apps.builder.builds.running import dialogue_add
from apps.builder.models import Build, DialogueMessage, Kind
from apps.builder.workspace.context import BuildSandbox, in_home, is_install
from apps.capabilities.catalog.drafts import MAIN, REQUIREMENTS, RUN_MD
from apps.capabilities.catalog.selectors import capability_get, version_waiting
from apps.capabilities.catalog.versions import draft_of
from apps.capabilities.models import Execution
from apps.core.db.pool import in_db

SMALLER = "You can try again at once, or ask for something smaller."
MAX_FAILURE_CHARS = 6_000
NO_SCHEMA = "none was given. Design one from the description, and hand it in as input_schema."


@cache
def system_prompt(*, rounds: int) -> str:
    """The same text for every build, so that it stays cached."""
    text = (Path(__file__).parent.parent / "prompts" / "builder.md").read_text(encoding="utf-8")
    return text.strip().replace("{rounds}", str(rounds))


def brief_for(build: Build) -> tuple[str, dict[str, str]]:
    """`(text, files)`: the first message, and the files that lie in the sandbox from the start. Reads the current version,
    where there is one, and the failed run of a repair."""
    # Builds asked for on the builds page have no schema.
    given = build.kind != Kind.NEW or bool(build.input_schema.get("properties"))
    schema = json.dumps(build.input_schema, ensure_ascii=False) if given else NO_SCHEMA
    lines = [
        "Build this tool." if build.kind == Kind.NEW else "Make a new version of this tool.",
        f"Name: {build.name}",
        f"Description: {build.description}",
        f"Input schema: {schema}",
    ]
    if build.request:
        lines.append(f"The user had said: <said>{build.request}</said>")
    if build.feedback:
        lines.append(f"What to do differently: <feedback>{build.feedback}</feedback>")
    run = None
    if build.execution_id is not None:
        run = Execution.objects.for_user(build.user_id).filter(pk=build.execution_id).first()
    files = _present_files(build, run)
    if run is not None:
        output = (run.stdout + run.stderr).strip()
        lines += [
            "It failed on this input; find out why and correct it. Use this input as one of the examples where it makes sense.",
            f"Input: {json.dumps(run.input, ensure_ascii=False)[:MAX_FAILURE_CHARS]}",
            f"Error ({run.error_code}): {run.error_message[-MAX_FAILURE_CHARS:]}",
            *([f"It printed: {output[-MAX_FAILURE_CHARS:]}"] if output else []),
        ]
    if files:
        lines.append("These files of its present version lie in the sandbox:")
        lines += [f"--- {name}\n{text}" for name, text in files.items()]
    return "\n\n".join(lines), files


def _present_files(build: Build, run: Execution | None) -> dict[str, str]:
    """Those of the newest version: one that waits beside the current one is what the user saw last. For a repair those of
    the version that failed, where it is one of the two."""
    capability = capability_get(build.user_id, build.name)
    if capability.current is None:
        return {}
    waiting = version_waiting(capability)
    meant = waiting is not None and (run is None or run.version == waiting.number)
    draft = draft_of(capability, waiting if meant else None)
    parts = {
        MAIN: draft.main,
        REQUIREMENTS: draft.requirements,
        RUN_MD: draft.run_md,
        "examples.json": json.dumps(list(draft.examples), ensure_ascii=False, indent=1),
    }
    return {name: text for name, text in parts.items() if text.strip()}


class BuildFailed(Exception):
    """A build cannot go on. `args` are a code for programs and the reason for the user."""


@dataclass
class DialogueStore:
    """`TurnStore` of a build, as this process has read it. Each message is committed when its method returns; then the build
    may end."""

    build: Build
    state: LoopState
    sandbox: BuildSandbox

    async def save_assistant(self, blocks: list[dict[str, Any]], stop_reason: str, round: int) -> None:
        await self.add("assistant", blocks, round, stop_reason)

    async def save_tool_results(
        self, uses: list[dict[str, Any]], blocks: list[dict[str, Any]], round: int
    ) -> list[dict[str, Any]]:
        """Raises BuildFailed where there is no sandbox, or the tokens are used up."""
        await self.add("user", blocks, round)
        if self.sandbox.unavailable:
            raise BuildFailed("sandbox_unavailable", self.sandbox.unavailable)
        usage, most = self.state.usage, settings.IZZY_BUILD_TOKENS
        used = (
            usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        )
        if used >= most:
            reason = f"It used up its {most:,} tokens (IZZY_BUILD_TOKENS). {SMALLER}"
            raise BuildFailed("too_many_tokens", reason)
        return blocks

    async def add(
        self, role: str, blocks: list[dict[str, Any]], round: int, stop_reason: str = ""
    ) -> None:
        """Raises TurnTaken."""
        if not await in_db(
            dialogue_add,
            build=self.build,
            role=role,
            blocks=blocks,
            round=round,
            stop_reason=stop_reason,
        ):
            raise TurnTaken


def dialogue_read(build: Build) -> tuple[list[dict[str, Any]], int, str]:
    """`(messages, rounds, stop_reason)` of the stored talk, in the shape of the Messages API; empty for a build that begins."""
    rows = DialogueMessage.objects.for_user(build.user_id).filter(build=build).order_by("position")
    messages: list[dict[str, Any]] = []
    rounds, stop_reason = 0, ""
    for row in rows:
        messages.append({"role": row.role, "content": json.loads(row.blocks)})
        if row.role == "assistant":
            rounds, stop_reason = row.round, row.stop_reason
    return messages, rounds, stop_reason


def made_in(messages: list[dict[str, Any]]) -> tuple[dict[str, str], list[str]]:
    """`(files, installs)` by the calls that succeeded, in order: what a new sandbox needs."""
    blocks = [block for message in messages for block in message["content"]]
    done = {
        block["tool_use_id"]
        for block in blocks
        if block["type"] == "tool_result" and not block.get("is_error")
    }
    calls = [block for block in blocks if block["type"] == "tool_use" and block["id"] in done]
    files: dict[str, str] = {}
    installs: list[str] = []
    for call in calls:
        given = call["input"]
        if call["name"] == "write_file":
            files[in_home(str(given["path"]))] = str(given["content"])
        elif call["name"] == "run_command" and is_install(str(given["command"])):
            installs.append(str(given["command"]))
    return files, installs
