"""The agentic loop: call the model, run its tool calls, repeat."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from uuid import UUID

from apps.agent.client import ModelClient, Usage
from apps.agent.events import Event
from apps.agent.executor import ToolExecutor
from apps.agent.tools.base import Tool


@dataclass(kw_only=True)
class TurnState:
    """One turn, as its caller hands it in and as the loop moves it on.

    `messages` are in the shape of the Messages API and grow as the turn goes on. To resume, hand in what is
    stored: the last message is then the assistant's with open tool calls (`rounds_done` counts its round), or the
    user's with their results, or an assistant message that ended otherwise (say why in `stop_reason`).
    `partial_blocks` are the text blocks of the answer under way that `TurnStore` has not seen: store them when
    the turn is cancelled or fails. `usage` adds up; start it with `selectors.turn_usage` when resuming.
    """

    user_id: UUID
    conversation_id: UUID
    turn_id: UUID
    system: list[dict[str, Any]] | str
    tools: list[Tool]
    messages: list[dict[str, Any]]
    model: str
    purpose: Literal["chat", "builder"] = "chat"
    max_rounds: int = 10
    rounds_done: int = 0
    max_tokens: int = 8192
    stop_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    partial_blocks: list[dict[str, Any]] = field(default_factory=list)
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    build_id: str | None = None


class TurnStore(Protocol):
    """Where a turn's messages are kept; each method has committed when it returns."""

    async def save_assistant(self, blocks: list[dict[str, Any]], stop_reason: str, round: int) -> None:
        """One assistant message; called before its tools run. Rounds count from 1."""

    async def save_tool_results(self, blocks: list[dict[str, Any]], round: int) -> None:
        """All `tool_result` blocks of the round: one user message."""


def run_turn(
    state: TurnState, *, client: ModelClient, executor: ToolExecutor, store: TurnStore
) -> AsyncIterator[Event]:
    """Runs or resumes the turn and yields its events, ending with one `Response` or `TurnFailed`.

    A model's failure becomes `TurnFailed`; cancellation passes through (the caller then says `TurnStopped`).
    """
    raise NotImplementedError
