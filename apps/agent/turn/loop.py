"""The agentic loop: call the model, run its tool calls, repeat."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, Protocol
from uuid import UUID

from apps.agent.model.client import (
    Endpoint,
    ModelClient,
    ModelError,
    ModelRequest,
    ModelResponse,
    Retry,
    ServerCall,
    ServerResult,
    Usage,
)
from apps.agent.model.failures import stream_cut
from apps.agent.model.messages import content_of, readable_text
from apps.agent.selectors import ToolCallOutput
from apps.agent.tools.base import Tool
from apps.agent.turn.events import (
    Event,
    ModelRetry,
    Question,
    Response,
    TextDelta,
    TurnFailed,
    TurnResumed,
)
from apps.agent.turn.executor import ToolExecutor
from apps.agent.turn.rounds import Round, ServerCalls, TurnTaken, UserDialog

__all__ = ["LoopState", "TurnStore", "TurnTaken", "run_turn"]

REFUSED = "The model declined to answer this. Edit the message and try again, or ask something else."
EMPTY = "The model ended without an answer. Try again."
NOTICES = {
    "max_tokens": "The answer was cut off at the length limit. Say “go on” for the rest.",
    "model_context_window_exceeded": "The conversation has reached the model's limit, so the answer was cut off. "
    "Start a new conversation to go on; what was saved to memory comes along.",
    "max_rounds": "Izzy stopped after many rounds of tool calls.",
}


@dataclass(kw_only=True)
class LoopState:
    """One turn, as its caller hands it in and as the loop moves it on.

    `messages` are in the shape of the Messages API and grow as the turn goes on. To resume, hand in what is
    stored: the last message is then the assistant's with open tool calls (`rounds_done` counts its round), or the
    user's with their results, or an assistant message that ended otherwise (say why in `stop_reason`).
    `partial_blocks` are the text blocks of the answer under way that `TurnStore` has not seen: store them when
    the turn is cancelled or fails. `usage` and `tool_calls` add up; when resuming, start them with
    `selectors.turn_usage` and `selectors.turn_tool_calls`. `endpoint` is asked throughout the turn; None: the one that is set at
    each call.
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
    endpoint: Endpoint | None = None


class TurnStore(Protocol):
    """Where a turn's messages are kept; each method has committed when it returns."""

    async def save_assistant(self, blocks: list[dict[str, Any]], stop_reason: str, round: int) -> None:
        """One assistant message; called before its tools run. Rounds count from 1."""

    async def save_tool_results(
        self, uses: list[dict[str, Any]], blocks: list[dict[str, Any]], round: int
    ) -> list[dict[str, Any]]:
        """All `tool_result` blocks of the round, of these `tool_use` blocks: one user message. Returns what the model is sent,
        which has pictures behind them where a tool was to show some."""


async def run_turn(
    state: LoopState, *, client: ModelClient, executor: ToolExecutor, store: TurnStore
) -> AsyncGenerator[Event, None]:
    """Runs or resumes the turn and yields its events, ending with one `Response` or `TurnFailed`.

    Cancellation passes through, and so does `TurnTaken`: another process goes on, the caller leaves the rows alone.
    """
    if state.rounds_done:
        yield TurnResumed()
    server_calls = ServerCalls(executor, state.tool_calls)
    while True:
        last = state.messages[-1]
        uses = [block for block in content_of(last) if block["type"] == "tool_use"]
        if last["role"] == "assistant" and uses:
            tools = Round(executor, uses, state.rounds_done)
            async with aclosing(tools.events()) as events:
                async for event in events:
                    yield event
            _take_calls(state, tools)
            if tools.waiting:
                yield _response(state, tools.waiting)
                return
            sent = await store.save_tool_results(uses, tools.results, state.rounds_done)
            state.messages.append({"role": "user", "content": sent})
        elif last["role"] == "assistant" and state.stop_reason != "pause_turn":
            yield _response(state)
            return
        if state.rounds_done >= state.max_rounds:
            text = f"I stopped after {state.max_rounds} rounds of tool calls without coming to an end. Say “go on” and I will."
            yield TextDelta(text)
            await _keep(state, store, [{"type": "text", "text": text}], "max_rounds")
            yield _response(state)
            return
        try:
            async with aclosing(_ask_model(state, client, store, server_calls)) as events:
                async for event in events:
                    yield event
        except ModelError as error:
            yield TurnFailed(error.code, error.message)
            return


async def _ask_model(
    state: LoopState, client: ModelClient, store: TurnStore, calls: ServerCalls
) -> AsyncGenerator[Event, None]:
    """Streams one answer; a whole one is stored first, then part of the turn."""
    request = _request(state, calls.executor)
    response = None
    async with aclosing(client.stream(request)) as chunks:
        async for chunk in chunks:
            match chunk:
                case ModelResponse():
                    response = chunk
                case Retry():
                    at = datetime.now(UTC) + timedelta(seconds=chunk.seconds)
                    yield ModelRetry(chunk.code, chunk.message, at.isoformat(), chunk.seconds)
                case ServerCall():
                    yield calls.begin(chunk)
                case ServerResult():
                    for event in await calls.end(chunk, request.round):
                        yield event
                case _:
                    if not state.partial_blocks:
                        state.partial_blocks.append({"type": "text", "text": ""})
                    state.partial_blocks[-1]["text"] += chunk.text
                    yield TextDelta(chunk.text)
    if response is None:
        raise stream_cut()
    state.usage += response.usage
    if response.stop_reason == "refusal":
        raise ModelError("refusal", REFUSED)
    if not response.blocks:
        raise ModelError("empty_answer", EMPTY)
    await _keep(state, store, response.blocks, response.stop_reason)


def _request(state: LoopState, executor: ToolExecutor) -> ModelRequest:
    at_endpoint = [tool for tool in state.tools if tool.runs_at_endpoint]
    return ModelRequest(
        user_id=state.user_id,
        purpose=state.purpose,
        model=state.model,
        messages=state.messages,
        system=state.system,
        tools=[tool.definition() for tool in state.tools],
        ours=frozenset(tool.name for tool in at_endpoint if executor.approval(tool) != "allow"),
        max_tokens=state.max_tokens,
        conversation_id=state.conversation_id,
        turn_id=state.turn_id,
        round=state.rounds_done + 1,
        endpoint=state.endpoint,
    )


async def _keep(
    state: LoopState, store: TurnStore, blocks: list[dict[str, Any]], stop_reason: str
) -> None:
    await store.save_assistant(blocks, stop_reason, state.rounds_done + 1)
    state.rounds_done += 1
    state.stop_reason = stop_reason
    last = state.messages[-1]
    if last["role"] == "assistant":  # it paused: what follows belongs to it, also when it is read back
        state.messages[-1] = last | {"content": [*content_of(last), *blocks]}
    else:
        state.messages.append({"role": "assistant", "content": blocks})
    state.partial_blocks.clear()


def _take_calls(state: LoopState, tools: Round) -> None:
    known = {call["id"] for call in state.tool_calls}
    for call in tools.calls:
        if call.outcome and call.id not in known:
            state.tool_calls.append(ToolCallOutput.dump(call.row))
        if call.outcome and call.outcome.build_id:
            state.build_id = call.outcome.build_id


def _response(state: LoopState, waiting: Sequence[UserDialog] = ()) -> Response:
    """The last event of a turn that ended or waits for the user; of several questions and approvals the first is named."""
    notice = NOTICES.get(state.stop_reason)
    questions = [item.fields() for item in waiting if isinstance(item, Question)]
    approvals = [item.fields() for item in waiting if not isinstance(item, Question)]
    return Response(
        text=readable_text(content_of(state.messages[-1])),
        build_id=state.build_id,
        tool_calls=list(state.tool_calls),
        usage=asdict(state.usage) | {"cost_usd": round(state.usage.cost_usd, 6)},
        notice={"code": state.stop_reason, "message": notice} if notice else None,
        pending_question=questions[0] if questions else None,
        pending_approval=approvals[0] if approvals else None,
    )
