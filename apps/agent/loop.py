"""The agentic loop: call the model, run its tool calls, repeat."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

from apps.agent.client import (
    ModelClient,
    ModelError,
    ModelRequest,
    ModelResponse,
    Retry,
    ServerCall,
    ServerResult,
)
from apps.agent.events import Event, ModelRetry, TextDelta, TurnFailed, TurnResumed
from apps.agent.executor import ToolExecutor
from apps.agent.rounds import Round, TurnTaken
from apps.agent.server_calls import ServerCalls
from apps.agent.shapes import ToolCallOutput
from apps.agent.state import TurnState, TurnStore, content_of, response_of, waiting_response

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
