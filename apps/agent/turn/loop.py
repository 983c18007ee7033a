"""The agentic loop: call the model, run its tool calls, repeat."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol
from uuid import UUID

from apps.agent.model.client import (
    ModelClient,
    ModelError,
    ModelRequest,
    ModelResponse,
    Retry,
    ServerCall,
    ServerResult,
    Usage,
)
from apps.agent.model.messages import content_of, readable_text
from apps.agent.selectors import ToolCallOutput
from apps.agent.tools.base import Tool
from apps.agent.turn.events import (
    ApprovalRequested,
    Event,
    ModelRetry,
    Question,
    Response,
    TextDelta,
    TurnFailed,
    TurnResumed,
)
from apps.agent.turn.executor import ToolExecutor
from apps.agent.turn.rounds import Round, ServerCalls, TurnTaken

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


__all__ = ["TurnState", "TurnStore", "TurnTaken", "run_turn"]

REFUSED = "The model declined to answer this. Edit the message and try again, or ask something else."
EMPTY = "The model ended without an answer. Try again."


async def run_turn(
    state: TurnState, *, client: ModelClient, executor: ToolExecutor, store: TurnStore
) -> AsyncGenerator[Event, None]:
    """Runs or resumes the turn and yields its events, ending with one `Response` or `TurnFailed`.

    A model's failure becomes `TurnFailed`. Cancellation passes through (the caller then says `TurnStopped`), and
    so does `TurnTaken`: another process goes on with this turn, the caller leaves its rows alone.
    """
    if state.rounds_done:
        yield TurnResumed()
    try:
        async with aclosing(_rounds(state, client, executor, store)) as events:
            async for event in events:
                yield event
    except ModelError as error:
        yield TurnFailed(error.code, error.message)


async def _rounds(
    state: TurnState, client: ModelClient, executor: ToolExecutor, store: TurnStore
) -> AsyncGenerator[Event, None]:
    server_calls = ServerCalls(executor)
    while True:
        if calls := _open_calls(state):
            tools = Round(executor, calls, state.rounds_done)
            async with aclosing(tools.events()) as events:
                async for event in events:
                    yield event
            _take_calls(state, tools)
            if tools.waiting:
                yield waiting_response(state, tools.waiting)
                return
            await store.save_tool_results(tools.results, state.rounds_done)
            state.messages.append({"role": "user", "content": tools.results})
        elif _finished(state):
            yield response_of(state)
            return
        if state.rounds_done >= state.max_rounds:
            async for event in _fallback(state, store):
                yield event
            return
        async with aclosing(_ask_model(state, client, store, server_calls)) as events:
            async for event in events:
                yield event


async def _ask_model(
    state: TurnState, client: ModelClient, store: TurnStore, calls: ServerCalls
) -> AsyncGenerator[Event, None]:
    request = ModelRequest(
        user_id=state.user_id,
        purpose=state.purpose,
        model=state.model,
        messages=state.messages,
        system=state.system,
        tools=[tool.definition() for tool in state.tools],
        ours=_run_here(state, calls.executor),
        max_tokens=state.max_tokens,
        conversation_id=state.conversation_id,
        turn_id=state.turn_id,
        round=state.rounds_done + 1,
    )
    response = None
    async with aclosing(client.stream(request)) as events:
        async for event in events:
            match event:
                case ModelResponse():
                    response = event
                case Retry():
                    at = datetime.now(UTC) + timedelta(seconds=event.seconds)
                    yield ModelRetry(event.code, event.message, at.isoformat(), event.seconds)
                case ServerCall():
                    for told in calls.begin(event):
                        yield told
                case ServerResult():
                    for told in await calls.end(event, request.round):
                        yield told
                case _:
                    _grow(state.partial_blocks, event.text)
                    yield TextDelta(event.text)
    state.tool_calls.extend(calls.taken())
    await _take(state, response, store)


def _run_here(state: TurnState, executor: ToolExecutor) -> frozenset[str]:
    """The tools that the endpoint could run itself and may not, because the user wants to be asked, or never."""
    return frozenset(
        tool.name for tool in state.tools if tool.runs_at_endpoint and executor.approval(tool) != "allow"
    )


async def _take(state: TurnState, response: ModelResponse | None, store: TurnStore) -> None:
    """Keeps a whole response: stored first, then part of the turn."""
    if response is None:
        raise ModelError(
            "stream_cut", "The connection to the model broke before the answer was complete. Try again."
        )
    state.usage += response.usage
    if response.stop_reason == "refusal":
        raise ModelError("refusal", REFUSED)
    if not response.blocks:
        raise ModelError("empty_answer", EMPTY)
    await _keep(state, store, response.blocks, response.stop_reason)


async def _keep(state: TurnState, store: TurnStore, blocks: list[dict[str, Any]], stop_reason: str) -> None:
    await store.save_assistant(blocks, stop_reason, state.rounds_done + 1)
    state.rounds_done += 1
    state.stop_reason = stop_reason
    last = state.messages[-1]
    if (
        last["role"] == "assistant"
    ):  # it paused: what follows belongs to the same message, also when it is read back
        state.messages[-1] = last | {"content": [*content_of(last), *blocks]}
    else:
        state.messages.append({"role": "assistant", "content": blocks})
    state.partial_blocks.clear()


async def _fallback(state: TurnState, store: TurnStore) -> AsyncGenerator[Event, None]:
    text = f"I stopped after {state.max_rounds} rounds of tool calls without coming to an end. Say “go on” and I will."
    yield TextDelta(text)
    await _keep(state, store, [{"type": "text", "text": text}], "max_rounds")
    yield response_of(state)


def _take_calls(state: TurnState, tools: Round) -> None:
    known = {call["id"] for call in state.tool_calls}
    ended = [call for call in tools.calls if call.outcome and call.id not in known]
    state.tool_calls.extend(ToolCallOutput.dump(call.row) for call in ended)
    state.build_id = tools.build_id or state.build_id


def _open_calls(state: TurnState) -> list[dict[str, Any]]:
    last = state.messages[-1]
    if last["role"] != "assistant" or isinstance(last["content"], str):
        return []
    return [block for block in last["content"] if block["type"] == "tool_use"]


def _finished(state: TurnState) -> bool:
    return state.messages[-1]["role"] == "assistant" and state.stop_reason != "pause_turn"


def _grow(blocks: list[dict[str, Any]], text: str) -> None:
    if not blocks:
        blocks.append({"type": "text", "text": ""})
    blocks[-1]["text"] += text
