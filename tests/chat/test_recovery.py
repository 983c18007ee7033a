"""Leases, sweeps, and the runner that was away too long."""

import gc
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from django.db import OperationalError
from django.utils import timezone

from apps.accounts.models import User
from apps.chat.conversations import handover as afterwards
from apps.chat.conversations.handover import document_of, messages_index_pending
from apps.chat.conversations.services import conversation_create
from apps.chat.models import Conversation, Message, Turn, TurnEvent
from apps.chat.stream.events import LoggedEvent, events_of, rows_of
from apps.chat.turns.queue import conversation_take, turns_interrupt
from apps.chat.turns.scheduler import conversations_left, schedule_soon, scheduler
from apps.chat.turns.services import message_send
from apps.chat.turns.store import RESERVE
from apps.core.db.pool import in_db
from apps.core.ids import uuid7
from apps.core.jobs.worker import sweeps
from apps.search.documents import Scope
from apps.search.selectors import search
from tests.chat.client import connected
from tests.chat.rows import calls, conversation, messages, said, turn
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.waiting import until


def change(**values: Any) -> None:
    Conversation.objects.unscoped().update(**values)


def past() -> Any:
    return timezone.now() - timedelta(minutes=1)


def test_numbers_that_were_never_handed_out_are_given_back(alice: User) -> None:
    place = conversation_create(user_id=alice.id).id
    assert conversation_take(place, "one") == (0, 1, RESERVE, alice.pk)
    assert conversation_take(place, "two") is None
    Conversation.lease_release(place, "one", stored_seq=4, last_seq=5)
    assert conversation_take(place, "two") == (4, 6, RESERVE + 5, alice.pk)


def test_after_a_crash_numbers_are_fresh(alice: User) -> None:
    place = conversation_create(user_id=alice.id).id
    conversation_take(place, "one")
    change(lease_until=past())
    assert conversation_take(place, "two") == (0, RESERVE + 1, 2 * RESERVE, alice.pk)


def test_the_log_gives_back_what_was_told() -> None:
    place, one, two = uuid7(), uuid7(), uuid7()
    told = [
        LoggedEvent(1, one, "turn_started", {}),
        *[LoggedEvent(number, one, "text_delta", {"text": f"t{number} "}) for number in range(2, 6)],
        LoggedEvent(9, one, "text_delta", {"text": "after a gap"}),
        LoggedEvent(10, two, "text_delta", {"text": "another turn"}),
        LoggedEvent(11, two, "response", {"text": "x"}),
    ]
    rows = rows_of(place, told)
    assert [(row.seq, row.last_seq) for row in rows] == [(1, 1), (2, 5), (9, 9), (10, 10), (11, 11)]
    assert events_of(rows) == told
    assert events_of(rows, 3) == told[3:]


async def test_a_process_that_comes_back_after_its_lease_writes_nothing(
    alice: User, model: AnthropicServer
) -> None:
    held = reply("One two three", hold_after=4)
    model.add(held)
    async with connected(alice) as page:
        place = await conversation(alice)
        queued = await page.say("Count", conversation=place)
        await page.until("text_delta")
        await scheduler().flush((await turn(queued["turn"])).conversation_id)
        await in_db(change, runner="another", lease_until=past())
        await in_db(turns_interrupt)
        held.release.set()
        await scheduler().idle()
    row = await turn(queued["turn"])
    assert (row.state, row.error_code) == ("interrupted", "interrupted")
    rows = await messages(place)
    assert rows[0] == ("user", "text", said("Count"))
    assert len(rows) == 2
    assert await in_db(lambda: TurnEvent.objects.filter(type="response").count()) == 0


async def test_the_sweep_closes_calls_that_were_open(alice: User, model: AnthropicServer) -> None:
    held = reply("After.", hold_after=1)
    model.add(reply("Look. ", tool("conversation_list")), held)
    async with connected(alice) as page:
        place = await conversation(alice)
        queued = await page.say("Go", conversation=place)
        await page.until("tool_result")
    await in_db(change, runner="another", lease_until=past())
    from apps.agent.models import ToolCall

    await in_db(lambda: ToolCall.objects.unscoped().update(state="running", result=""))
    await in_db(lambda: Message.objects.unscoped().filter(kind="tool_results").delete())
    await in_db(turns_interrupt)
    held.release.set()
    await scheduler().idle()
    [call] = await calls(queued["turn"])
    assert (call.state, call.is_error, call.error_code) == ("done", True, "interrupted")
    assert [kind for _, kind, _ in await messages(place)] == ["text", "text", "tool_results", "closing"]
    async with connected(alice) as page:
        snapshot = await page.snapshot(place)
        events = await in_db(
            lambda: list(TurnEvent.objects.order_by("seq").values_list("type", flat=True))
        )
    assert snapshot["messages"][0]["state"] == "interrupted"
    assert events[-2:] == ["tool_result", "error"]


async def test_what_nobody_runs_is_found(
    alice: User, model: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.chat.turns.scheduler.RESCUE_AGE", timedelta(seconds=30))
    place = await conversation(alice)
    sent = await in_db(lambda: message_send(user_id=alice.id, text="Hello", conversation=place))
    assert await in_db(conversations_left) == []
    await in_db(lambda: Turn.objects.unscoped().update(created_at=past()))
    assert await in_db(conversations_left) == [sent.conversation_id]
    await in_db(conversation_take, sent.conversation_id, "another")
    assert await in_db(conversations_left) == []
    await in_db(change, lease_until=past())
    assert await in_db(conversations_left) == [sent.conversation_id]


async def test_the_upkeep_takes_up_what_was_left(
    alice: User, model: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.chat.turns.scheduler.RESCUE_SECONDS", 0.1)
    place = await conversation(alice)
    sent = await in_db(lambda: message_send(user_id=alice.id, text="Hello", conversation=place))
    await in_db(lambda: Turn.objects.unscoped().update(created_at=past()))
    scheduler().start()

    async def is_done() -> bool:
        return (await turn(str(sent.turn_id))).state == "done"

    await until(is_done)
    await scheduler().idle()


async def test_a_conversation_that_cannot_be_taken_up_for_a_full_disk_is_when_there_is_room(
    alice: User, model: AnthropicServer, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    take = Mock(side_effect=OperationalError("database or disk is full"))
    monkeypatch.setattr("apps.chat.turns.scheduler.conversation_take", take)
    monkeypatch.setattr("apps.chat.turns.scheduler.RESCUE_SECONDS", 0.1)
    place = await conversation(alice)
    sent = await in_db(lambda: message_send(user_id=alice.id, text="Hello", conversation=place))
    await scheduler().schedule(sent.conversation_id)
    await scheduler().idle()
    gc.collect()  # a task's error that nobody asked for is told when the task goes
    (line,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert line.message.startswith(f"work on conversation {place} failed")

    take.side_effect = conversation_take
    await in_db(lambda: Turn.objects.unscoped().update(created_at=past()))

    async def is_done() -> bool:
        return (await turn(str(sent.turn_id))).state == "done"

    await until(is_done)
    await scheduler().idle()


async def test_a_turn_waiting_for_two_decisions_is_left_until_both_are_made(
    alice: User, model: AnthropicServer
) -> None:
    model.add(reply(tool("ask_user", {"question": "Which?"})))
    async with connected(alice) as page:
        await page.say("Go", conversation=await conversation(alice))
        await page.ended()
        await scheduler().idle()
    await in_db(lambda: Turn.objects.unscoped().update(created_at=past()))
    assert await in_db(conversations_left) == []


async def test_a_stopping_server_ends_its_turns_and_gives_the_conversation_back(
    alice: User, model: AnthropicServer
) -> None:
    held = reply("One two three", hold_after=4)
    model.add(held)
    async with connected(alice) as page:
        place = await conversation(alice)
        queued = await page.say("Count", conversation=place)
        while page.text(queued["turn"]) != "One two ":
            await page.until("text_delta")
        await scheduler().close()
        end = await page.ended()
        held.release.set()
    assert (end["type"], end["code"]) == ("error", "interrupted")
    assert (await messages(place))[-1] == ("assistant", "text", said("One two "))
    assert not (await in_db(lambda: Conversation.objects.unscoped().get().runner))


def test_messages_that_were_not_indexed_are_indexed_later(alice: User) -> None:
    place = conversation_create(user_id=alice.id)
    silent = conversation_create(user_id=alice.id, use_memory=False)
    for row in (place, silent):
        Message.objects.create(
            user_id=alice.id,
            conversation=row,
            position=1,
            role="user",
            text="The boat is called Albatross",
        )
    messages_index_pending()
    assert search(alice.id, "Albatross", scope=Scope()) == []
    Message.objects.unscoped().update(created_at=past())
    messages_index_pending()
    assert [hit.conversation_id for hit in search(alice.id, "Albatross", scope=Scope())] == [place.id]
    assert not Message.objects.unscoped().filter(indexed=False).exists()


def test_a_message_that_cannot_be_indexed_does_not_keep_back_the_others(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user, text in ((alice, "a broken one"), (bob, "The boat is called Albatross")):
        Message.objects.create(
            user_id=user.id,
            conversation=conversation_create(user_id=user.id),
            position=1,
            role="user",
            text=text,
        )
    Message.objects.unscoped().update(created_at=past())

    def fail_once(message: Message) -> Any:
        if "broken" in message.text:
            raise ValueError("cannot be read")
        return document_of(message)

    monkeypatch.setattr(afterwards, "document_of", fail_once)
    messages_index_pending()
    assert search(bob.id, "Albatross", scope=Scope())
    assert list(Message.objects.for_user(alice).values_list("indexed", flat=True)) == [False]


def test_the_worker_knows_the_sweeps() -> None:
    names = {sweep.name for sweep in sweeps()}
    assert {"turns_interrupted", "messages_index_pending", "turn_events_prune"} <= names
    for sweep in sweeps():
        if sweep.name.startswith(("turn", "messages")):
            sweep.function()


def test_a_kick_without_a_server_does_nothing(alice: User) -> None:
    schedule_soon(conversation_create(user_id=alice.id).id)
