"""How a turn ends, for every way a model's answer can end: the table in docs/turns.md."""

import asyncio
import threading
from typing import Any

import pytest

from apps.accounts.models import User
from apps.agent.models import ModelCall, ToolCall
from apps.agent.tools.base import Tier
from apps.agent.turn.events import Response, TextDelta, ToolResult, TurnResumed
from apps.core.db.pool import in_db
from tests.agent.turns import Turn, a_tool, answering
from tests.peers.anthropic_server import AnthropicServer, Reply, reply, thinking, tool
from tests.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)


def only_call(user: User) -> ModelCall:
    return ModelCall.objects.for_user(user).get()


async def row(user: User) -> ModelCall:
    return await in_db(only_call, user)


async def test_an_answer_is_streamed_stored_and_ends_in_a_response(
    alice: User, peer: AnthropicServer
) -> None:
    peer.add(reply("Good morning, Alice.", usage={"input_tokens": 10, "output_tokens": 5}))
    turn = Turn(alice)
    await turn.run()
    assert "".join(event.text for event in turn.of(TextDelta)) == "Good morning, Alice."
    last = turn.events[-1]
    assert isinstance(last, Response)
    assert last.text == "Good morning, Alice."
    assert not last.waits
    assert last.notice is None
    assert last.usage["input_tokens"] == 10
    assert last.usage["calls"] == 1
    blocks = [{"type": "text", "text": "Good morning, Alice."}]
    assert turn.store.messages == [("assistant", 1, blocks, "end_turn")]
    assert turn.state.partial_blocks == []


async def test_every_call_leaves_a_row_with_tokens_times_and_cost(
    alice: User, peer: AnthropicServer
) -> None:
    usage = {
        "input_tokens": 1000,
        "output_tokens": 200,
        "cache_read_input_tokens": 5000,
        "cache_creation_input_tokens": 40,
    }
    peer.add(reply("Hi.", usage=usage))
    turn = Turn(alice)
    await turn.run()
    call = await row(alice)
    assert (call.input_tokens, call.output_tokens, call.cache_read_tokens, call.cache_write_tokens) == (
        1000,
        200,
        5000,
        40,
    )
    assert float(call.cost_usd) == pytest.approx((1000 * 3 + 200 * 15 + 5000 * 0.3 + 40 * 3.75) / 1e6)
    assert (call.purpose, call.model, call.endpoint) == ("chat", "claude-sonnet-5-5", "custom")
    assert (call.turn_id, call.round, call.stop_reason, call.error_code) == (
        turn.turn_id,
        1,
        "end_turn",
        "",
    )
    assert call.first_token_ms is not None
    assert call.first_token_ms <= call.latency_ms
    assert call.request_id == "req_peer"


async def test_a_call_costs_what_is_set_for_the_model_asked_for_where_its_endpoint_calls_it_otherwise(
    alice: User, peer: AnthropicServer, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.IZZY_MODEL_PRICES = {"claude-sonnet": (3, 15, 3, 3)}
    events = Reply.events
    monkeypatch.setattr(Reply, "events", lambda given, _, size: events(given, "/models/q4.gguf", size))
    peer.add(reply("Hi.", usage={"input_tokens": 1000, "output_tokens": 200}))
    await Turn(alice).run()
    assert float((await row(alice)).cost_usd) == pytest.approx((1000 * 3 + 200 * 15) / 1e6)


async def test_a_server_that_cannot_count_costs_nobody_the_answer(
    alice: User, peer: AnthropicServer
) -> None:
    peer.add(reply("Here.", usage={"input_tokens": -1, "cache_read_input_tokens": 10**30}))
    turn = Turn(alice)
    await turn.run()
    last = turn.events[-1]
    assert isinstance(last, Response)
    assert last.text == "Here."
    assert (await row(alice)).input_tokens == 0


async def test_tools_run_and_their_results_go_back_together(alice: User, peer: AnthropicServer) -> None:
    one, two = tool("one", {}), tool("two", {})
    peer.add(reply("Let me look.", one, two), reply("Both done."))
    turn = Turn(alice, [a_tool("one", answering("first")), a_tool("two", answering({"n": 2}))])
    await turn.run()
    sent = peer.messages[1]["messages"]
    assert sent[1]["role"] == "assistant"
    assert sent[2] == {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": one["id"], "content": "first"},
            {"type": "tool_result", "tool_use_id": two["id"], "content": '{"n": 2}'},
        ],
    }
    assert turn.store.roles == ["assistant", "user", "assistant"]
    last = turn.events[-1]
    assert isinstance(last, Response)
    assert [(call["name"], call["result"]) for call in last.tool_calls] == [
        ("one", "first"),
        ("two", '{"n": 2}'),
    ]
    assert last.usage["calls"] == 2


async def test_the_assistant_message_is_stored_before_its_tools_run(
    alice: User, peer: AnthropicServer
) -> None:
    seen: list[list[str]] = []
    turn = Turn(alice)

    async def handler(context: Any, args: dict[str, Any]) -> str:
        seen.append(list(turn.store.roles))
        return "ok"

    turn.tools = [a_tool("look", handler)]
    peer.add(reply(tool("look")), reply("Done."))
    await turn.run()
    assert seen == [["assistant"]]


async def test_thinking_goes_back_with_its_signature(alice: User, peer: AnthropicServer) -> None:
    peer.add(reply(thinking("Hm, a look."), tool("look")), reply("Done."))
    turn = Turn(alice, [a_tool("look", answering("ok"))])
    await turn.run()
    first = peer.messages[1]["messages"][1]["content"][0]
    assert first == {"type": "thinking", "thinking": "Hm, a look.", "signature": "c2lnbmVk"}


async def test_max_tokens_keeps_the_text_and_says_that_it_was_cut(
    alice: User, peer: AnthropicServer
) -> None:
    peer.add(reply("A long sto", stop_reason="max_tokens"))
    turn = Turn(alice)
    await turn.run()
    last = turn.events[-1]
    assert isinstance(last, Response)
    assert last.text == "A long sto"
    assert last.notice is not None
    assert last.notice["code"] == "max_tokens"
    assert turn.store.messages[0][3] == "max_tokens"


async def test_a_full_context_window_keeps_the_text_and_says_so(
    alice: User, peer: AnthropicServer
) -> None:
    peer.add(reply("As far as I g", stop_reason="model_context_window_exceeded"))
    turn = Turn(alice)
    await turn.run()
    last = turn.events[-1]
    assert isinstance(last, Response)
    assert last.notice is not None
    assert last.notice["code"] == "model_context_window_exceeded"


@pytest.mark.parametrize("raw", ['{"content": "half a no', '{"content": "whole"}', ""])
async def test_a_tool_call_cut_at_max_tokens_is_never_run(
    alice: User, peer: AnthropicServer, raw: str
) -> None:
    ran: list[dict[str, Any]] = []

    async def handler(context: Any, args: dict[str, Any]) -> str:
        ran.append(args)
        return "ok"

    whole, cut = tool("write", {"content": "one"}), tool("write", raw=raw)
    peer.add(reply(whole, cut, stop_reason="max_tokens"), reply("I will be brief."))
    turn = Turn(alice, [a_tool("write", handler, Tier.SIDE_EFFECTING)])
    await turn.run()
    assert ran == [{"content": "one"}]
    results = turn.store.results
    assert "is_error" not in results[0]
    assert results[1]["is_error"] is True
    assert "cut off" in results[1]["content"]
    assert isinstance(turn.events[-1], Response)


async def test_broken_json_in_a_tool_call_is_an_error_for_the_model(
    alice: User, peer: AnthropicServer
) -> None:
    peer.add(reply(tool("look", raw='{"a": [1,')), reply("Sorry."))
    turn = Turn(alice, [a_tool("look", answering("never"))])
    await turn.run()
    assert turn.store.results[0]["is_error"] is True
    assert turn.store.results[0]["content"].startswith("The input was cut off, was not a JSON object")


async def test_pause_turn_goes_on_with_what_came_so_far(alice: User, peer: AnthropicServer) -> None:
    peer.add(reply("Searching the web", stop_reason="pause_turn"), reply("and found it."))
    turn = Turn(alice)
    await turn.run()
    assert [message["role"] for message in peer.messages[1]["messages"]] == ["user", "assistant"]
    assert turn.store.roles == ["assistant", "assistant"]
    assert isinstance(turn.events[-1], Response)


async def test_ten_rounds_of_tool_calls_end_in_a_fallback_message(
    alice: User, peer: AnthropicServer
) -> None:
    peer.fallback = lambda request: reply(tool("look"))
    turn = Turn(alice, [a_tool("look", answering("again"))])
    await turn.run()
    last = turn.events[-1]
    assert isinstance(last, Response)
    assert last.text.startswith("I stopped after 10 rounds")
    assert last.notice is not None
    assert last.notice["code"] == "max_rounds"
    assert len(peer.messages) == 10
    assert len(turn.of(ToolResult)) == 10
    assert turn.store.roles == ["assistant", "user"] * 10 + ["assistant"]


async def test_an_answer_that_was_stored_but_not_reported_is_reported_on_resuming(
    alice: User, peer: AnthropicServer
) -> None:
    peer.add(reply("Done before the crash."))
    turn = Turn(alice)
    await turn.run()
    events = await turn.fresh_process().run()
    assert [type(event) for event in events] == [TurnResumed, Response]
    assert len(peer.messages) == 1


async def test_cancelling_while_text_streams_keeps_what_came(alice: User, peer: AnthropicServer) -> None:
    held = reply("One two three four", hold_after=4)
    peer.add(held)
    turn = Turn(alice)
    task = asyncio.create_task(turn.run())
    await until(lambda: "".join(event.text for event in turn.of(TextDelta)) == "One two ")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    held.release.set()
    assert turn.state.partial_blocks == [{"type": "text", "text": "One two "}]
    assert turn.store.messages == []
    call = await row(alice)
    assert call.error_code == "cancelled"
    assert call.input_tokens > 0
    assert call.output_tokens == 2  # its endpoint would have counted them at the end


async def test_cancelling_while_a_tool_runs_cancels_the_tool(alice: User, peer: AnthropicServer) -> None:
    started, ended = asyncio.Event(), threading.Event()

    async def handler(context: Any, args: dict[str, Any]) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    peer.add(reply(tool("slow")))
    turn = Turn(alice, [a_tool("slow", handler)])
    task = asyncio.create_task(turn.run())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()
    call = await in_db(lambda: ToolCall.objects.for_user(alice).get())
    assert call.state == ToolCall.State.RUNNING, "chat closes it, with the reason"
