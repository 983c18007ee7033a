"""Several messages in one conversation, and what a new one does to a turn that waits."""

import asyncio
from uuid import UUID

import pytest

from apps.accounts.models import User
from apps.chat.models import Turn
from apps.chat.stream.events import LoggedEvent, queued_event
from apps.chat.turns.queue import Work, work_next
from apps.chat.turns.scheduler import scheduler
from apps.chat.turns.services import message_send, question_answer, turn_stop
from apps.core.db.pool import in_db
from tests.chat.client import connected
from tests.chat.rows import calls, conversation, messages, said, turn
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.waiting import eventually


async def test_a_second_message_waits_for_the_first_answer(alice: User, model: AnthropicServer) -> None:
    first = reply("One two three", hold_after=4)
    model.add(first, reply("Second answer."))
    async with connected(alice) as page:
        place = await conversation(alice)
        one = await page.say("First", conversation=place)
        await page.until("text_delta")
        two = await page.say("Second", conversation=place)
        assert (await turn(two["turn"])).state == "queued"
        snapshot = await page.snapshot(place)
        assert [entry["text"] for entry in snapshot["queued"]] == ["Second"]
        assert "Second" not in [message["text"] for message in snapshot["messages"]]
        first.release.set()
        assert (await page.ended())["turn"] == one["turn"]
        assert (await page.ended())["turn"] == two["turn"]
        await scheduler().idle()
    texts = [blocks[-1]["text"] for _, _, blocks in await messages(place)]
    assert texts == ["First", "One two three", "Second", "Second answer."]
    assert [message["role"] for message in model.messages[1]["messages"]] == [
        "user",
        "assistant",
        "user",
    ]


async def test_the_answer_that_goes_on_while_another_message_is_taken_up_is_numbered_beside_it(
    alice: User, model: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = reply("One two three", hold_after=4)
    model.add(first, reply("Second answer."))

    def while_it_goes_on(conversation_id: UUID, running: UUID | None) -> Work:
        if running is not None and not first.release.is_set():
            before = actor.log.last_seq
            first.release.set()
            eventually(lambda: actor.log.last_seq > before)
        return work_next(conversation_id, running)

    async with connected(alice) as page:
        place = await conversation(alice)
        one = await page.say("First", conversation=place)
        await page.until("text_delta")
        actor = scheduler().actors[UUID(place)]
        monkeypatch.setattr("apps.chat.turns.actor.work_next", while_it_goes_on)
        two = await page.say("Second", conversation=place)
        ends = [await page.ended(), await page.ended()]
        await scheduler().idle()
    assert [end["turn"] for end in ends] == [one["turn"], two["turn"]]
    assert [end["text"] for end in ends] == ["One two three", "Second answer."]


async def test_stop_lets_the_queued_message_have_its_turn(alice: User, model: AnthropicServer) -> None:
    first = reply("One two three", hold_after=4)
    model.add(first, reply("Second answer."))
    async with connected(alice) as page:
        place = await conversation(alice)
        one = await page.say("First", conversation=place)
        await page.until("text_delta")
        two = await page.say("Second", conversation=place)
        await page.send("stop", conversation=place)
        assert (await page.ended())["type"] == "turn_stopped"
        assert (await page.ended())["text"] == "Second answer."
        first.release.set()
        await scheduler().idle()
    assert [(await turn(name["turn"])).state for name in (one, two)] == ["stopped", "done"]


async def test_a_new_message_declines_what_was_asked(alice: User, model: AnthropicServer) -> None:
    other = await conversation(alice)
    model.add(reply(tool("conversation_delete", {"conversation_id": other})), reply("Nice weather."))
    async with connected(alice) as page:
        place = await conversation(alice)
        one = await page.say("Delete it", conversation=place)
        await page.ended()
        await page.say("How is the weather?", conversation=place)
        end = await page.ended()
        await scheduler().idle()
        assert (await page.snapshot(other))["type"] == "snapshot"
    assert end["text"] == "Nice weather."
    assert (await turn(one["turn"])).state == "done"
    [call] = await calls(one["turn"])
    assert (call.state, call.is_error, call.error_code) == ("done", True, "superseded")
    closed = next(frame for frame in page.seen if frame["type"] == "tool_result")
    assert (closed["turn"], closed["is_error"]) == (one["turn"], True)
    roles = [message["role"] for message in model.messages[1]["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]


async def test_an_answer_that_comes_too_late_is_refused(alice: User, model: AnthropicServer) -> None:
    model.add(reply(tool("ask_user", {"question": "Which?"})), reply("Fine."))
    async with connected(alice) as page:
        place = await conversation(alice)
        await page.say("Do it", conversation=place)
        asked = await page.ended()
        await page.say("Never mind", conversation=place)
        await page.ended()
        await scheduler().idle()
        await page.send("answer", id=asked["pending_question"]["id"], text="That one")
        refused = await page.until("error")
    assert refused["code"] == "not_waiting"
    assert "turn" not in refused


async def test_of_two_tabs_the_later_is_told_that_its_decision_does_not_count(
    alice: User, model: AnthropicServer
) -> None:
    place, third = await conversation(alice), await conversation(alice)
    model.add(reply(tool("conversation_delete", {"conversation_id": third})), reply("It stays."))
    async with connected(alice) as page, connected(alice) as other:
        await page.say("Delete it", conversation=place)
        asked = (await page.ended())["pending_approval"]["id"]
        await page.send("approve", id=asked, decision="deny")
        await page.ended()
        await other.send("approve", id=asked, decision="allow")
        refused = await other.until("error")
        await scheduler().idle()
    assert (refused["code"], "turn" in refused) == ("not_waiting", False)
    assert "does not count" in refused["message"]


async def test_an_answer_holds_where_the_next_message_came_before_it_was_taken_up(
    alice: User, model: AnthropicServer
) -> None:
    """As when a page comes back and sends both at once, or while a server is restarted."""
    model.add(reply(tool("ask_user", {"question": "Which?"})), reply("Red it is."), reply("Sunny."))
    async with connected(alice) as page:
        place = await conversation(alice)
        one = await page.say("Choose", conversation=place)
        asked = (await page.ended())["pending_question"]["id"]
        await scheduler().idle()
        await in_db(lambda: question_answer(user_id=alice.id, tool_call_id=asked, text="red"))
        await page.say("How is the weather?", conversation=place)
        assert [(await page.ended())["text"] for _ in range(2)] == ["Red it is.", "Sunny."]
        await scheduler().idle()
    [call] = await calls(one["turn"])
    assert (call.result, call.is_error) == ("red", False)


async def test_stop_ends_a_waiting_turn(alice: User, model: AnthropicServer) -> None:
    model.add(reply(tool("ask_user", {"question": "Which?"})))
    async with connected(alice) as page:
        place = await conversation(alice)
        queued = await page.say("Do it", conversation=place)
        await page.ended()
        await page.send("stop", conversation=place)
        assert (await page.ended())["type"] == "turn_stopped"
        await scheduler().idle()
    assert (await turn(queued["turn"])).state == "stopped"
    assert (await messages(place))[-1][:2] == ("assistant", "closing")


async def test_two_approvals_of_one_round_are_both_asked_for(
    alice: User, model: AnthropicServer
) -> None:
    places = [await conversation(alice) for _ in range(2)]
    asked = [tool("conversation_delete", {"conversation_id": place}) for place in places]
    model.add(reply(*asked), reply("Half done."))
    async with connected(alice) as page:
        here = await conversation(alice)
        queued = await page.say("Delete both", conversation=here)
        waits = await page.ended()
        ids = [frame["id"] for frame in page.seen if frame["type"] == "approval_requested"]
        assert waits["pending_approval"]["id"] == ids[0]
        for number, decision in enumerate(["allow", "decline"]):
            if number == 1 and len(ids) == 1:
                second = await page.until("approval_requested")
                ids.append(second["id"])
                await page.ended()
            await page.send("approve", id=ids[number], decision=decision)
        assert (await page.ended())["text"].endswith("Half done.")
        await scheduler().idle()
    assert [call.is_error for call in await calls(queued["turn"])] == [False, True]


async def test_the_same_client_id_makes_no_second_turn(alice: User, model: AnthropicServer) -> None:
    async with connected(alice) as page:
        one = await page.say("Hello", client_id="same")
        await page.ended()
        two = await page.say("Hello", client_id="same")
        await scheduler().idle()
    assert (one["turn"], one["seq"]) == (two["turn"], two["seq"])
    assert await in_db(lambda: Turn.objects.unscoped().count()) == 1


async def test_a_page_that_lost_its_acknowledgement_finds_its_new_conversation(
    alice: User, model: AnthropicServer
) -> None:
    held = reply("One two", hold_after=3)
    model.add(held)
    async with connected(alice) as lost:
        await lost.send("message", text="Hello", client_id="mine")
        await lost.until("turn_queued")
    async with connected(alice) as page:
        queued = await page.say("Hello", client_id="mine")
        await page.until("snapshot")  # a turn that has ended before it is in it, and sends nothing more
        held.release.set()
        end = await page.ended()
        await scheduler().idle()
    assert (queued["client_id"], end["text"]) == ("mine", "One two")
    assert await in_db(lambda: Turn.objects.unscoped().count()) == 1


async def test_one_that_comes_back_before_its_message_was_taken_up_gets_the_acknowledgement(
    alice: User, model: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = reply("One two", hold_after=3)
    model.add(held)
    sent = await in_db(lambda: message_send(user_id=alice.id, text="Hello", client_id="mine"))
    loop, runner = asyncio.get_running_loop(), scheduler()

    def taken_up_meanwhile(conversation_id: UUID, turn_id: UUID) -> tuple[LoggedEvent | None, int]:
        found = queued_event(conversation_id, turn_id)
        asyncio.run_coroutine_threadsafe(runner.schedule(conversation_id), loop)
        eventually(lambda: queued_event(conversation_id, turn_id)[0])
        return found

    monkeypatch.setattr("apps.chat.consumers.queued_event", taken_up_meanwhile)
    async with connected(alice) as page:
        queued = await page.say("Hello", client_id="mine")
        held.release.set()
        end = await page.ended()
        await scheduler().idle()
    assert (queued["turn"], end["text"]) == (str(sent.turn_id), "One two")
    assert page.types()[:2] == ["turn_queued", "turn_started"]


async def test_no_more_than_twenty_messages_queue_up(alice: User, model: AnthropicServer) -> None:
    held = reply("One two", hold_after=3)
    model.add(held)
    async with connected(alice) as page:
        place = await conversation(alice)
        await page.say("0", conversation=place)
        await page.until("text_delta")
        for number in range(20):
            await page.say(str(number + 1), conversation=place)
        refused = await page.say("21", conversation=place)
        assert (refused["type"], refused["code"]) == ("error", "too_many_queued")
        await page.send("stop", conversation=place)
        await page.ended()
        held.release.set()
        for _ in range(20):
            assert (await page.ended())["type"] == "response"
        await scheduler().idle()
    assert len(await messages(place)) == 42


async def test_a_message_stopped_while_it_was_queued_is_kept_without_an_answer(
    alice: User, model: AnthropicServer
) -> None:
    place = await conversation(alice)
    sent = await in_db(lambda: message_send(user_id=alice.id, text="Hello", conversation=place))
    await in_db(lambda: turn_stop(user_id=alice.id, conversation_id=place))
    await scheduler().schedule(sent.conversation_id)
    await scheduler().idle()
    assert (await turn(str(sent.turn_id))).state == "stopped"
    rows = await messages(place)
    assert rows[0] == ("user", "text", said("Hello"))
    assert rows[1][:2] == ("assistant", "closing")
    assert model.messages == []
