"""Where a build's dialogue is kept, and the checks that stand between its rounds."""

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings

from apps.agent.loop import TurnState, TurnTaken
from apps.builder.models import Build, DialogueMessage
from apps.builder.services.running import dialogue_add
from apps.builder.workshop.bench import is_install
from apps.builder.workshop.workshop import Workshop
from apps.core.database import in_db


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
