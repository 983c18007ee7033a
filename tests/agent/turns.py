"""Runs one turn the way chat does, with its messages kept in a list instead of rows."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from apps.accounts.models import User
from apps.agent.model.client import ModelClient
from apps.agent.model.sdk import SdkModelClient
from apps.agent.tools.base import Tier, Tool
from apps.agent.turn.events import Event
from apps.agent.turn.executor import ToolExecutor, executor_for
from apps.agent.turn.loop import LoopState, run_turn
from apps.core.db.pool import in_db
from apps.core.ids import uuid7

E = TypeVar("E")

OBJECT = {"type": "object", "properties": {}, "additionalProperties": False}


@dataclass
class Kept:
    """A `TurnStore` that remembers what it was given, in order."""

    messages: list[tuple[str, int, list[dict[str, Any]], str]] = field(default_factory=list)

    async def save_assistant(self, blocks: list[dict[str, Any]], stop_reason: str, round: int) -> None:
        self.messages.append(("assistant", round, blocks, stop_reason))

    async def save_tool_results(
        self, uses: list[dict[str, Any]], blocks: list[dict[str, Any]], round: int
    ) -> list[dict[str, Any]]:
        self.messages.append(("user", round, blocks, ""))
        return blocks

    @property
    def roles(self) -> list[str]:
        return [role for role, *_ in self.messages]

    @property
    def results(self) -> list[dict[str, Any]]:
        return [block for role, _, blocks, _ in self.messages if role == "user" for block in blocks]


@dataclass
class Turn:
    """A turn of `user` over the shared client; `events` grows with every run."""

    user: User
    tools: Sequence[Tool] = ()
    words: str = "Hello"
    state: LoopState = field(init=False)
    store: Kept = field(default_factory=Kept)
    events: list[Event] = field(default_factory=list)
    client: ModelClient = field(default_factory=SdkModelClient)
    executor: ToolExecutor | None = None
    approvals: dict[str, str] = field(default_factory=dict)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    def __post_init__(self) -> None:
        self.state = LoopState(
            user_id=self.user.pk,
            conversation_id=uuid7(),
            turn_id=uuid7(),
            system="You are Izzy.",
            tools=list(self.tools),
            messages=[{"role": "user", "content": [{"type": "text", "text": self.words}]}],
            model="claude-sonnet-5-5",
        )

    async def run(self) -> list[Event]:
        """Runs or resumes; returns the events of this stretch."""
        before = len(self.events)
        async with aclosing(
            run_turn(self.state, client=self.client, executor=await self._executor(), store=self.store)
        ) as stream:
            async for event in stream:
                async with self.changed:
                    self.events.append(event)
                    self.changed.notify_all()
        return self.events[before:]

    async def _executor(self) -> ToolExecutor:
        executor = self.executor
        if executor is None:
            executor = await in_db(
                executor_for,
                user_id=self.user.pk,
                conversation_id=self.state.conversation_id,
                turn_id=self.state.turn_id,
            )
        executor.tools = {tool.name: tool for tool in self.tools}
        executor.approvals = {**executor.approvals, **self.approvals}
        return executor

    async def heard(self, kind: type[Event], count: int) -> None:
        """Waits until the running turn has yielded that many events of the kind."""
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.of(kind)) >= count)

    def fresh_process(self) -> "Turn":
        """The same turn as another process would load it: from what was stored."""
        other = Turn(self.user, self.tools, self.words, approvals=self.approvals)
        other.state.conversation_id, other.state.turn_id = self.state.conversation_id, self.state.turn_id
        other.store.messages = list(self.store.messages)
        for role, _, blocks, stop_reason in self.store.messages:
            other.state.messages.append({"role": role, "content": blocks})
            if role == "assistant":
                other.state.rounds_done += 1
                other.state.stop_reason = stop_reason
        return other

    def of(self, kind: type[E]) -> list[E]:
        """The events of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def turn_id(self) -> UUID:
        return self.state.turn_id


def a_tool(name: str, handler: Any, tier: Tier = Tier.READ_ONLY, **options: Any) -> Tool:
    """A tool with an open schema, unless another is given."""
    options.setdefault("input_schema", {"type": "object"})
    return Tool(name=name, description=f"The tool {name}.", handler=handler, tier=tier, **options)


def answering(text: Any) -> Any:
    """A handler that returns the same every time."""

    async def handler(context: Any, args: dict[str, Any]) -> Any:
        return text

    return handler
