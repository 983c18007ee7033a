"""Versions of a message: what an edit or a retry replaced stays, with all that followed it, and can be chosen again; everybody sees
the branch in force alone."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.chat.conversations.handover import messages_capture_pending, messages_index_pending
from apps.chat.conversations.transfer import conversation_document
from apps.chat.models import Conversation, Message, Turn
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from apps.core.ids import parse_id
from apps.memory.models import CaptureWindow, Import
from apps.memory.transfer import batches
from apps.memory.transfer.exporting import export_lines
from apps.memory.transfer.jobs import import_create, import_get
from apps.memory.transfer.running import imports_run
from apps.search.documents import Scope, Source
from apps.search.selectors import search
from tests.chat.client import Socket, connected, program_of
from tests.chat.rows import conversation
from tests.memory.transfer.conftest import counts
from tests.peers.anthropic_server import AnthropicServer, failure, reply, tool

SPOKEN = Scope(sources=frozenset({Source.CONVERSATION}))


async def ask(page: Socket, text: str, place: str, **values: Any) -> dict[str, Any]:
    """A message and its answer; the acknowledgement."""
    queued = await page.say(text, conversation=place, **values)
    assert queued["type"] == "turn_queued", queued
    await page.ended()
    await scheduler().idle()
    return queued


async def choose(page: Socket, place: str, turn: str) -> None:
    await page.send("branch", conversation=place, turn=turn)
    event = await page.until("branch", "error")
    assert (event["type"], event.get("turn")) == ("branch", turn), event
    await scheduler().idle()


async def texts(page: Socket, place: str) -> list[str]:
    return [message["text"] for message in (await page.snapshot(place))["messages"]]


def sent(model: AnthropicServer) -> list[str]:
    """The words of the model's last request."""
    blocks = [block for message in model.messages[-1]["messages"] for block in message["content"]]
    said = [block.get("text", "") for block in blocks]
    return [text for text in said if not text.startswith("<context>")]


async def test_an_edited_message_keeps_what_it_replaces_and_the_model_sees_the_chosen_branch(
    alice: User, model: AnthropicServer
) -> None:
    model.add(*map(reply, ("Red is warm.", "Sure.", "Blue is cold.", "More of red.", "More of blue.")))
    async with connected(alice) as page:
        place = await conversation(alice)
        red = await ask(page, "Tell me about red", place)
        await ask(page, "Go on", place)
        blue = await ask(page, "Tell me about blue", place, replaces=red["message"]["id"])
        assert blue["message"]["versions"] == [red["turn"], blue["turn"]]
        await choose(page, place, red["turn"])
        assert await texts(page, place) == ["Tell me about red", "Red is warm.", "Go on", "Sure."]
        await ask(page, "And then?", place)
        assert sent(model) == ["Tell me about red", "Red is warm.", "Go on", "Sure.", "And then?"]
        await choose(page, place, blue["turn"])
        await choose(page, place, red["turn"])
        assert len(await texts(page, place)) == 6
        await choose(page, place, blue["turn"])
        await ask(page, "And then?", place)
        assert sent(model) == ["Tell me about blue", "Blue is cold.", "And then?"]
        shown = (await page.snapshot(place))["messages"][0]
    assert shown["versions"] == [red["turn"], blue["turn"]]
    assert shown["turn"] == blue["turn"]


async def test_versions_within_a_version_come_back_as_they_were_left(
    alice: User, model: AnthropicServer
) -> None:
    async with connected(alice) as page:
        place = await conversation(alice)
        one = await ask(page, "One", place)
        deep = await ask(page, "Deep", place)
        deeper = await ask(page, "Deeper", place, replaces=deep["message"]["id"])
        two = await ask(page, "Two", place, replaces=one["message"]["id"])
        three = await ask(page, "Three", place, replaces=two["message"]["id"])
        said = [message["text"] for message in (await page.snapshot(place))["messages"]]
        assert said[0] == "Three"
        await choose(page, place, two["turn"])
        assert (await texts(page, place))[::2] == ["Two"]
        await choose(page, place, one["turn"])
        assert (await texts(page, place))[::2] == ["One", "Deeper"]
        await choose(page, place, three["turn"])
        # One that lies in a branch which is not in force brings that back first.
        await page.send("branch", conversation=place, turn=deep["turn"])
        assert (await page.until("branch"))["turn"] == one["turn"]
        assert (await page.until("branch"))["turn"] == deep["turn"]
        await scheduler().idle()
        snapshot = await page.snapshot(place)
    shown = [message for message in snapshot["messages"] if message["role"] == "user"]
    assert [message["text"] for message in shown] == ["One", "Deep"]
    assert [message["versions"] for message in shown] == [
        [one["turn"], two["turn"], three["turn"]],
        [deep["turn"], deeper["turn"]],
    ]


async def test_an_answer_asked_for_anew_keeps_the_old_one_and_a_failure_is_none(
    alice: User, model: AnthropicServer
) -> None:
    model.add(failure(400, "invalid_request_error"), reply("First."), reply("Second."))
    async with connected(alice) as page:
        place = await conversation(alice)
        await ask(page, "Hello", place)
        await page.send("retry", conversation=place)
        first = await page.until("turn_queued")
        await page.ended()
        await scheduler().idle()
        assert first["message"]["versions"] == []
        await page.send("retry", conversation=place)
        second = await page.until("turn_queued")
        await page.ended()
        await scheduler().idle()
        assert second["message"]["versions"] == [first["turn"], second["turn"]]
        await choose(page, place, first["turn"])
        assert await texts(page, place) == ["Hello", "First."]


async def test_while_a_turn_runs_nothing_is_switched_and_a_waiting_one_ends(
    alice: User, model: AnthropicServer
) -> None:
    held = reply("One two", hold_after=3)
    model.add(reply("Red."), held, reply(tool("ask_user", {"question": "Which?"})))
    async with connected(alice) as page:
        place = await conversation(alice)
        red = await ask(page, "Red", place)
        blue = await page.say("Blue", conversation=place, replaces=red["message"]["id"])
        await page.until("text_delta")
        await page.send("branch", conversation=place, turn=red["turn"])
        refused = await page.until("error")
        assert refused["code"] == "turn_running"
        held.release.set()
        await page.ended()
        await scheduler().idle()
        asking = await ask(page, "Which one?", place)
        await choose(page, place, red["turn"])
        assert (await page.until("turn_stopped"))["turn"] == asking["turn"]
        assert await texts(page, place) == ["Red", "Red."]
        for wrong in (asking["turn"], str(parse_id(place)), "nonsense", None):
            await page.send("branch", conversation=place, turn=wrong)
            assert (await page.until("error"))["code"] == "not_found"
        await page.send("branch", conversation=place, turn=blue["turn"])
        await page.until("branch")
        await scheduler().idle()


async def test_search_capture_and_exports_follow_the_branch_in_force(
    alice: User, model: AnthropicServer
) -> None:
    async with connected(alice) as page:
        place = await conversation(alice)
        boat = await ask(page, "My boat is called Albatross", place)
        bike = await ask(page, "My bike is called Swift", place, replaces=boat["message"]["id"])
        assert await in_db(found, alice) == {"My bike is called Swift"}
        await choose(page, place, boat["turn"])
        assert await in_db(found, alice) == {"My boat is called Albatross"}
    assert await in_db(waiting, alice) == {"My boat is called Albatross"}

    def exported() -> tuple[str, list[dict[str, Any]]]:
        text = "".join(conversation_document(alice.pk, parse_id(place)).parts)
        return text, [json.loads(line) for line in b"".join(export_lines(alice.pk)).splitlines()]

    text, rows = await in_db(exported)
    assert "Albatross" in text
    assert "Swift" not in text
    said = {row["text"]: row for row in rows if row["type"] == "message" and row["role"] == "user"}
    assert said["My bike is called Swift"]["superseded_by"] == boat["turn"]
    turns = {row["id"]: row for row in rows if row["type"] == "turn"}
    assert turns[boat["turn"]]["place"] == turns[bike["turn"]]["place"] > 0
    assert said["My bike is called Swift"]["branch"] == turns[bike["turn"]]["position"]


def found(user: User) -> set[str]:
    hits = search(user.pk, "What is called Albatross or Swift", scope=SPOKEN)
    return {hit.text for hit in hits if hit.text.startswith(("My b", "The b"))}


def waiting(user: User) -> set[str]:
    """Returns which of the user's words wait to be read, once the sweep has been."""
    Message.objects.for_user(user).update(created_at=timezone.now() - timedelta(hours=1))
    messages_capture_pending()
    windows = CaptureWindow.objects.for_user(user).filter(state="waiting")
    segments = [segment for window in windows for segment in window.segments]
    return {each["text"] for each in segments if each["text"].startswith("My")}


async def test_a_later_export_goes_on_with_a_conversation_as_it_went_on_itself(
    alice: User, bob: User, model: AnthropicServer
) -> None:
    """With turns and tool calls, and with the versions that gave way and came back meanwhile."""
    said = "The boat is called Albatross", "The bike is called Swift", "The cat is called Mia"
    called = reply(tool("calculate", {"expression": "6 * 7"}))
    model.add(*map(reply, ("Noted.", "Well.")), called, *map(reply, ("42.", "Good.", "Fine.")))
    async with connected(alice) as page:
        place = await conversation(alice)
        boat = await ask(page, said[0], place)
        await ask(page, "Go on", place)
        first = await in_db(exported, alice)
        await ask(page, said[1], place, replaces=boat["message"]["id"])
        second = await in_db(exported, alice)
        await ask(page, said[2], place)
        await choose(page, place, boat["turn"])
        await ask(page, "And then?", place)
        third = await in_db(exported, alice)
    await in_db(taken_in, bob, first)
    assert await in_db(found, bob) == {said[0]}
    for export, words in ((second, said[1]), (third, said[0])):
        assert counts(await in_db(taken_in, bob, export), "wrong") == {}
        long_ago = timezone.now() - timedelta(hours=1)
        await in_db(Message.objects.for_user(bob).update, created_at=long_ago)
        await in_db(messages_index_pending)
        assert await in_db(found, bob) == {words}
    assert await in_db(history, bob) == await in_db(history, alice)
    assert await in_db(ToolCall.objects.for_user(bob).count) == 1
    again = await in_db(taken_in, bob, second)
    assert counts(again) == {}
    assert await in_db(history, bob) == await in_db(history, alice)
    his = await in_db(Turn.objects.for_user(bob).get, messages__text=said[1])
    async with connected(bob) as page:
        copy = str(his.conversation_id)
        assert await texts(page, copy) == [said[0], "Noted.", "Go on", "Well.", "And then?", "Fine."]
        await choose(page, copy, str(his.pk))
        assert await texts(page, copy) == [said[1], "", "42.", said[2], "Good."]


@pytest.mark.parametrize("records", [1, 2, 3, 5])
async def test_a_later_export_may_be_taken_in_by_pieces(
    alice: User, bob: User, model: AnthropicServer, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    model.fallback = lambda request: reply("Noted.")
    async with connected(alice) as page:
        place, other = await conversation(alice), await conversation(alice)
        await ask(page, "Before", place)
        red = await ask(page, "My boat is red", place)
        await ask(page, "Hello", other)
        first = await in_db(exported, alice)
        await ask(page, "My boat is blue", place, replaces=red["message"]["id"])
        await ask(page, "Go on", other)
        await ask(page, "Another", await conversation(alice))
        second = await in_db(exported, alice)
    monkeypatch.setattr(batches, "RECORDS", records)
    await in_db(taken_in, bob, first)
    assert counts(await in_db(taken_in, bob, second, dry_run=True)) == counts(
        await in_db(taken_in, bob, second)
    )
    assert await in_db(history, bob) == await in_db(history, alice)


def exported(user: User) -> bytes:
    return b"".join(export_lines(user.pk))


def taken_in(user: User, data: bytes, **options: Any) -> Import:
    job = import_create(user_id=user.pk, chunks=[data], own=True, **options)
    imports_run()
    return import_get(user.pk, job.pk)


def history(user: User) -> list[tuple[Any, ...]]:
    """Each message with its turn, and what took its place, by their positions."""
    rows = Message.objects.for_user(user).order_by("conversation__created_at", "position")
    turn, by = ("turn__position", "turn__place"), "superseded_by__position"
    return list(rows.values_list("position", "text", *turn, by, "branch"))


async def test_a_summary_of_what_gave_way_is_taken_away(alice: User, model: AnthropicServer) -> None:
    async with connected(alice) as page:
        place = await conversation(alice)
        one = await ask(page, "One", place)
        two = await ask(page, "Two", place, replaces=one["message"]["id"])
        row = Conversation.objects.unscoped().filter(pk=place)
        until = await in_db(lambda: Message.objects.unscoped().filter(turn_id=two["turn"]).last())
        assert until is not None
        await in_db(lambda: row.update(summary="Two was said.", summary_until=until.position))
        await choose(page, place, one["turn"])
        assert await in_db(lambda: row.values_list("summary", "summary_until").get()) == ("", 0)


async def test_another_client_hears_of_it_also_when_it_was_away(
    alice: User, model: AnthropicServer
) -> None:
    async with connected(alice) as page, connected(alice) as other:
        place = await conversation(alice)
        one = await ask(page, "One", place)
        await ask(page, "Two", place, replaces=one["message"]["id"])
        seq = (await other.snapshot(place))["seq"]
        await choose(page, place, one["turn"])
        assert (await other.until("branch"))["turn"] == one["turn"]
        await other.send("open", conversation=place, seq=seq)
        assert (await other.until("branch", "snapshot"))["type"] == "branch"


async def test_a_program_switches_and_nobody_elses(
    alice: User, bob: User, model: AnthropicServer
) -> None:
    async with connected(alice) as page:
        place = await conversation(alice)
        one = await ask(page, "One", place)
        two = await ask(page, "Two", place, replaces=one["message"]["id"])
    program, other = await program_of(alice), await program_of(bob)
    path = f"conversations/{place}/branch/"
    assert (await other.post(path, {"turn": one["turn"]})).status_code == 404
    answer = await program.post(path, {"turn": one["turn"]})
    assert answer.json()["versions"] == [one["turn"], two["turn"]]
    await scheduler().idle()
    listed = (await program.get(f"conversations/{place}/messages/")).json()["results"]
    assert listed[0]["text"] == "One"
    assert (await program.post(path, {"turn": place})).status_code == 404
