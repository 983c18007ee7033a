"""One turn as it moves on, where its messages are kept, and what it tells when it ends or waits."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol
from uuid import UUID

from apps.agent.client import Usage
from apps.agent.events import ApprovalRequested, Question, Response
from apps.agent.server_blocks import readable_text
from apps.agent.tools.base import Tool

NOTICES = {
    "max_tokens": "The answer was cut off at the length limit. Say “go on” for the rest.",
    "model_context_window_exceeded": "The conversation has reached the model's limit, so the answer was cut off. "
    "Start a new conversation to go on; what was saved to memory comes along.",
    "max_rounds": "Izzy stopped after many rounds of tool calls.",
}


@dataclass(kw_only=True)
class TurnState:
    """One turn, as its caller hands it in and as the loop moves it on.

    `messages` are in the shape of the Messages API and grow as the turn goes on. To resume, hand in what is
    stored: the last message is then the assistant's with open tool calls (`rounds_done` counts its round), or the
    user's with their results, or an assistant message that ended otherwise (say why in `stop_reason`).
    `partial_blocks` are the text blocks of the answer under way that `TurnStore` has not seen: store them when
    the turn is cancelled or fails. `usage` and `tool_calls` add up; when resuming, start them with
    `selectors.turn_usage` and `selectors.turn_tool_calls`.
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


def waiting_response(state: TurnState, waiting: Sequence[Question | ApprovalRequested]) -> Response:
    """The end of a stream whose turn goes on after the user's answers; of several the first of each kind is named."""
    question = next((item for item in waiting if isinstance(item, Question)), None)
    approval = next((item for item in waiting if not isinstance(item, Question)), None)
    return response_of(
        state,
        pending_question=question.fields() if question else None,
        pending_approval=approval.fields() if approval else None,
    )


def response_of(
    state: TurnState,
    *,
    pending_question: dict[str, Any] | None = None,
    pending_approval: dict[str, Any] | None = None,
) -> Response:
    """The last event of a turn that ended or waits."""
    usage = asdict(state.usage) | {"cost_usd": round(state.usage.cost_usd, 6)}
    text = NOTICES.get(state.stop_reason)
    return Response(
        text=_text(state.messages[-1]),
        build_id=state.build_id,
        tool_calls=list(state.tool_calls),
        usage=usage,
        notice={"code": state.stop_reason, "message": text} if text else None,
        pending_question=pending_question,
        pending_approval=pending_approval,
    )


def _text(message: dict[str, Any]) -> str:
    return readable_text(content_of(message))


def content_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a message, whichever way it is written."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
