"""Every way a turn can end, over the websocket, against a model server on the loopback: the state, the event and the rows
that the table in docs/turns.md gives for it."""

import asyncio
import itertools

import pytest
from pytest_django import Settings

from apps.accounts.models import User
from apps.agent.model import sdk
from apps.agent.tools.base import Tier, Tool, ToolContext, ToolFailure
from apps.chat.turns.scheduler import scheduler
from tests.chat.client import Frame, Socket, connected
from tests.chat.rows import calls, conversation, messages, released, said, turn
from tests.peers.anthropic_server import AnthropicServer, failure, reply, tool
from tests.waiting import PATIENCE


async def talk(page: Socket, user: User, text: str = "Hello") -> tuple[str, Frame, Frame]:
    """A message in a new conversation: its id, the acknowledgement and the end."""
    place = await conversation(user)
    queued = await page.say(text, conversation=place)
    end = await page.ended()
    await scheduler().idle()
    return place, queued, end


async def test_an_answer_ends_done(alice: User, model: AnthropicServer) -> None:
    model.add(reply("Hello, **Alice**."))
    async with connected(alice) as page:
        place, queued, end = await talk(page, alice)
    assert end["type"] == "response"
    assert end["text"] == "Hello, **Alice**."
    assert list(dict.fromkeys(page.types())) == ["turn_queued", "turn_started", "text_delta", "response"]
    row = await turn(queued["turn"])
    assert (row.state, row.error_code, row.usage["calls"]) == ("done", "", 1)
    assert row.ended_at is not None
    assert await messages(place) == [
        ("user", "text", said("Hello")),
        ("assistant", "text", said("Hello, **Alice**.")),
    ]
    assert await released(place)


async def test_parallel_calls_run_side_by_side_and_answer_together(
    alice: User, model: AnthropicServer
) -> None:
    model.add(
        reply(
            "Let me look.",
            tool("think", {"thought": "a"}),
            tool("conversation_list", {}, id="toolu_list"),
        ),
        reply("Done."),
    )
    async with connected(alice) as page:
        place, queued, _ = await talk(page, alice)
    types = page.types()
    assert types.index("tool_result") > max(at for at, name in enumerate(types) if name == "tool_start")
    rows = await messages(place)
    assert [(role, kind) for role, kind, _ in rows] == [
        ("user", "text"),
        ("assistant", "text"),
        ("user", "tool_results"),
        ("assistant", "text"),
    ]
    assert [block["tool_use_id"] for block in rows[2][2]][1] == "toolu_list"
    assert [(call.name, call.state, call.is_error) for call in await calls(queued["turn"])] == [
        ("think", "done", False),
        ("conversation_list", "done", False),
    ]


async def test_a_failing_tool_is_told_to_the_model_and_the_turn_goes_on(
    alice: User, model: AnthropicServer
) -> None:
    model.add(reply(tool("conversation_read", {"conversation_id": "no-such"})), reply("There is none."))
    async with connected(alice) as page:
        _, queued, end = await talk(page, alice)
    assert end["text"] == "There is none."
    [call] = await calls(queued["turn"])
    assert call.is_error
    assert "conversation_list" in call.result
    result = model.messages[1]["messages"][-1]["content"][0]
    assert (result["is_error"], result["type"]) == (True, "tool_result")
    assert (await turn(queued["turn"])).state == "done"


async def test_an_input_that_does_not_fit_the_schema_is_never_run(
    alice: User, model: AnthropicServer
) -> None:
    model.add(reply(tool("conversation_list", {"limit": "many"})), reply("Sorry."))
    async with connected(alice) as page:
        _, queued, _ = await talk(page, alice)
    [call] = await calls(queued["turn"])
    assert (call.is_error, call.error_code) == (True, "invalid_input")
    assert "limit" in call.result


async def test_ten_rounds_of_tool_calls_end_with_a_fallback_message(
    alice: User, model: AnthropicServer
) -> None:
    model.fallback = lambda request: reply(tool("think", {"thought": "again"}))
    async with connected(alice) as page:
        place, queued, end = await talk(page, alice)
    assert end["type"] == "response"
    assert end["notice"]["code"] == "max_rounds"
    assert len(await calls(queued["turn"])) == 10
    assert (await turn(queued["turn"])).state == "done"
    rows = await messages(place)
    assert rows[-1][0] == "assistant"
    assert all(one[0] != other[0] for one, other in itertools.pairwise(rows)), "roles alternate"


async def test_a_question_waits_for_its_answer_and_the_turn_goes_on(
    alice: User, model: AnthropicServer
) -> None:
    model.add(reply("Hm.", tool("ask_user", {"question": "Which one?"})), reply("The red one, then."))
    async with connected(alice) as page:
        place, queued, end = await talk(page, alice)
        waiting = await turn(queued["turn"])
        assert (waiting.state, waiting.ended_at) == ("waiting", None)
        assert end["pending_question"]["text"] == "Which one?"
        assert [event["type"] for event in waiting.waiting_for] == ["question"]
        snapshot = await page.snapshot(place)
        assert snapshot["turn"]["waiting_for"][0]["text"] == "Which one?"
        await page.send("answer", id=end["pending_question"]["id"], text="The red one")
        final = await page.ended()
        await scheduler().idle()
    assert final["text"].endswith("The red one, then.")
    assert "turn_resumed" in page.types()
    assert (await turn(queued["turn"])).state == "done"
    [call] = await calls(queued["turn"])
    assert (call.answer, call.result) == ("The red one", "The red one")
    assert [message["role"] for message in model.messages[1]["messages"]] == [
        "user",
        "assistant",
        "user",
    ]


@pytest.mark.parametrize(("decision", "deleted"), [("allow", True), ("decline", False)])
async def test_an_approval_is_asked_for_and_kept_to(
    alice: User, model: AnthropicServer, decision: str, deleted: bool
) -> None:
    other = await conversation(alice)
    model.add(reply(tool("conversation_delete", {"conversation_id": other})), reply("Very well."))
    async with connected(alice) as page:
        _, queued, end = await talk(page, alice)
        assert end["pending_approval"]["input"] == {"conversation_id": other}
        assert (await turn(queued["turn"])).state == "waiting"
        await page.send("approve", id=end["pending_approval"]["id"], decision=decision)
        await page.ended()
        await scheduler().idle()
        found = await page.snapshot(other)
    assert (found["type"] == "error") is deleted
    [call] = await calls(queued["turn"])
    assert (call.state, call.is_error) == ("done", not deleted)
    assert (await turn(queued["turn"])).state == "done"


async def test_stop_in_the_middle_of_the_text_keeps_what_was_written(
    alice: User, model: AnthropicServer
) -> None:
    held = reply("One two three four", hold_after=4)
    model.add(held)
    async with connected(alice) as page:
        place = await conversation(alice)
        queued = await page.say("Count", conversation=place)
        while page.text(queued["turn"]) != "One two ":
            await page.until("text_delta")
        await page.send("stop", conversation=place)
        end = await page.ended()
        held.release.set()
        await scheduler().idle()
    assert end["type"] == "turn_stopped"
    assert (await turn(queued["turn"])).state == "stopped"
    assert await messages(place) == [
        ("user", "text", said("Count")),
        ("assistant", "text", said("One two ")),
    ]


async def test_stop_while_tools_run_closes_their_calls(
    alice: User, model: AnthropicServer, slow_tool: asyncio.Event
) -> None:
    model.add(reply("Wait.", tool("slow", {}), tool("slow", {})))
    async with connected(alice) as page:
        place = await conversation(alice)
        queued = await page.say("Go", conversation=place)
        await page.until("tool_start")
        await asyncio.wait_for(slow_tool.wait(), PATIENCE)
        await page.send("stop", conversation=place)
        end = await page.ended()
        await scheduler().idle()
    assert end["type"] == "turn_stopped"
    assert [(call.state, call.is_error) for call in await calls(queued["turn"])] == [("done", True)] * 2
    assert page.types().count("tool_result") == 2
    rows = await messages(place)
    assert [(role, kind) for role, kind, _ in rows] == [
        ("user", "text"),
        ("assistant", "text"),
        ("user", "tool_results"),
        ("assistant", "closing"),
    ]
    assert all(block["is_error"] for block in rows[2][2])


async def test_a_stopped_conversation_goes_on_with_the_next_message(
    alice: User, model: AnthropicServer, slow_tool: asyncio.Event
) -> None:
    model.add(reply("Wait.", tool("slow", {})), reply("Here I am."))
    async with connected(alice) as page:
        place = await conversation(alice)
        await page.say("Go", conversation=place)
        await page.until("tool_start")
        await page.send("stop", conversation=place)
        await page.ended()
        await page.say("And now?", conversation=place)
        end = await page.ended()
        await scheduler().idle()
    assert end["text"] == "Here I am."
    sent = model.messages[1]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user", "assistant", "user"]


async def test_a_short_retry_after_is_waited_for(alice: User, model: AnthropicServer) -> None:
    model.add(failure(429, "rate_limit_error", retry_after="1"), reply("Now."))
    async with connected(alice) as page:
        _, queued, end = await talk(page, alice)
    assert end["text"] == "Now."
    assert (await turn(queued["turn"])).state == "done"


async def test_a_long_retry_after_fails_with_the_time_to_wait(
    alice: User, model: AnthropicServer
) -> None:
    model.add(failure(429, "rate_limit_error", retry_after=str(int(sdk.PATIENCE) * 10)))
    async with connected(alice) as page:
        place, queued, end = await talk(page, alice)
    assert (end["type"], end["code"]) == ("error", "rate_limited")
    assert "minute" in end["message"] or "seconds" in end["message"]
    row = await turn(queued["turn"])
    assert (row.state, row.error_code, row.error_message) == ("failed", "rate_limited", end["message"])
    assert [(role, kind) for role, kind, _ in await messages(place)] == [
        ("user", "text"),
        ("assistant", "closing"),
    ]


async def test_an_overloaded_model_fails_after_its_retries(alice: User, model: AnthropicServer) -> None:
    model.add(*[failure(529, "overloaded_error", retry_after="0")] * 3)
    async with connected(alice) as page:
        _, queued, end = await talk(page, alice)
    assert (end["type"], end["code"]) == ("error", "overloaded")
    assert len(model.messages) == 3
    assert (await turn(queued["turn"])).state == "failed"


@pytest.mark.parametrize("cut", ["reset", "end"])
async def test_a_cut_stream_keeps_what_had_come(alice: User, model: AnthropicServer, cut: str) -> None:
    model.add(reply("One two three four", cut_after=4, cut=cut))
    async with connected(alice) as page:
        place, queued, end = await talk(page, alice)
    assert (end["type"], end["code"]) == ("error", "stream_cut")
    assert (await turn(queued["turn"])).state == "failed"
    assert (await messages(place))[-1] == ("assistant", "text", said("One two "))


async def test_an_error_in_the_middle_of_the_stream_keeps_what_had_come(
    alice: User, model: AnthropicServer
) -> None:
    model.add(reply("One two three", error_after=3, error_type="overloaded_error"))
    async with connected(alice) as page:
        place, _queued, end = await talk(page, alice)
    assert (end["type"], end["code"]) == ("error", "overloaded")
    assert (await messages(place))[-1] == ("assistant", "text", said("One "))


async def test_a_refusal_fails_and_says_what_to_do(alice: User, model: AnthropicServer) -> None:
    model.add(reply("I can", stop_reason="refusal"))
    async with connected(alice) as page:
        place, queued, end = await talk(page, alice)
    assert (end["type"], end["code"]) == ("error", "refusal")
    assert (await turn(queued["turn"])).state == "failed"
    assert (await messages(place))[-1][0] == "assistant"


async def test_an_answer_cut_at_max_tokens_is_done_with_a_notice(
    alice: User, model: AnthropicServer
) -> None:
    model.add(reply("A long", stop_reason="max_tokens"))
    async with connected(alice) as page:
        _place, queued, end = await talk(page, alice)
    assert (end["type"], end["text"], end["notice"]["code"]) == ("response", "A long", "max_tokens")
    assert (await turn(queued["turn"])).state == "done"


async def test_a_failed_conversation_goes_on_with_the_next_message(
    alice: User, model: AnthropicServer
) -> None:
    model.add(failure(400, "invalid_request_error"), reply("Here I am."))
    async with connected(alice) as page:
        place, _, end = await talk(page, alice)
        assert end["type"] == "error"
        await page.say("Again", conversation=place)
        assert (await page.ended())["text"] == "Here I am."
        await scheduler().idle()
    assert [message["role"] for message in model.messages[1]["messages"]] == [
        "user",
        "assistant",
        "user",
    ]


async def test_an_unreachable_model_fails_with_its_address(
    alice: User, model: AnthropicServer, settings: Settings
) -> None:
    settings.ANTHROPIC_BASE_URL = "http://127.0.0.1:9"
    async with connected(alice) as page:
        _, queued, end = await talk(page, alice)
    assert end["code"] == "model_unavailable"
    assert "127.0.0.1:9" in end["message"]
    assert (await turn(queued["turn"])).state == "failed"


async def test_a_bug_fails_the_turn_and_not_the_conversation(
    alice: User, model: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("apps.chat.turns.actor.turn_prepare", lambda turn_id: 1 / 0)
        async with connected(alice) as page:
            place, queued, end = await talk(page, alice)
    assert (end["type"], end["code"]) == ("error", "internal_error")
    assert (await turn(queued["turn"])).state == "failed"
    async with connected(alice) as page:
        await page.say("Again", conversation=place)
        assert (await page.ended())["type"] == "response"
        await scheduler().idle()


@pytest.fixture
def slow_tool(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Offers a tool `slow` that runs until it is cancelled; the event is set once it has begun."""
    begun = asyncio.Event()

    async def wait(context: ToolContext, args: dict[str, object]) -> str:
        begun.set()
        await asyncio.sleep(600)
        raise ToolFailure("it was to be cancelled")

    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    slow = Tool(
        name="slow",
        description="Waits.",
        input_schema=schema,
        handler=wait,
        tier=Tier.SIDE_EFFECTING,
        timeout=900,
    )
    monkeypatch.setitem(__import__("apps.agent.tools.base", fromlist=["_tools"])._tools, "slow", slow)
    return begun
