"""A conversation that is deleted while Izzy answers in it: whoever waits is told, and nothing is left or logged."""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Model
from django.utils import timezone

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.chat.conversations.handover import (
    messages_capture_pending,
    messages_index_pending,
    turn_capture,
    turn_index,
)
from apps.chat.conversations.services import (
    conversation_create,
    conversation_delete,
    conversation_hide,
    conversation_restore,
)
from apps.chat.models import Conversation, Message, Turn
from apps.chat.turns.scheduler import scheduler
from apps.chat.turns.services import message_send
from apps.core.db.pool import in_db
from apps.memory.models import CaptureWindow, MemoryUse
from apps.memory.notes.creation import memory_create
from apps.memory.notes.uses import uses_record
from apps.search.models import Passage
from tests.chat.client import connected, program_of
from tests.chat.rows import conversation
from tests.peers.anthropic_server import AnthropicServer, Reply, reply
from tests.waiting import PATIENCE


def rows_left() -> int:
    models: list[type[Model]] = [Conversation, Message, Turn, ToolCall, Passage]
    return sum(model._base_manager.count() for model in models)


def is_error_of_ours(record: logging.LogRecord) -> bool:
    """Not what asyncio says of tasks that an earlier test left behind."""
    return record.name.startswith("apps.") and record.levelno >= logging.ERROR


@pytest.mark.parametrize("held", [0, 4], ids=["before its first word", "in the middle"])
async def test_the_request_that_waits_for_the_answer_is_told(
    alice: User, model: AnthropicServer, caplog: pytest.LogCaptureFixture, held: int
) -> None:
    answer, asked = reply("One two three four five", hold_after=held), asyncio.Event()

    def answering(request: dict[str, Any]) -> Reply:
        asked.set()
        return answer

    model.add(answering)
    program, place = await program_of(alice), await conversation(alice)

    async def talk() -> tuple[int, str]:
        body = {"message": "Count", "conversation": place, "stream": True}
        response = await program.post("chat/", body)
        parts = [part async for part in response.streaming_content]
        return response.status_code, b"".join(parts).decode()

    talking = asyncio.ensure_future(talk())
    await asyncio.wait_for(asked.wait(), PATIENCE)
    assert (await program.send("delete", f"conversations/{place}/")).status_code == 204
    answer.release.set()
    status, text = await asyncio.wait_for(talking, PATIENCE)
    await scheduler().idle()
    assert (status, "deleted" in text) == (200, True), text
    assert await in_db(rows_left) == 0
    assert [record.getMessage() for record in caplog.records if is_error_of_ours(record)] == []


async def test_pages_that_watch_it_go_on_with_others(alice: User, model: AnthropicServer) -> None:
    answer = reply("One two three four five", hold_after=4)
    model.add(answer, reply("Hello again."))
    program = await program_of(alice)
    async with connected(alice) as page:
        place = (await page.say("Count"))["conversation"]
        await page.until("text_delta")
        assert (await program.send("delete", f"conversations/{place}/")).status_code == 204
        answer.release.set()
        end = await page.until("error")
        assert (end["conversation"], end["code"]) == (place, "not_found")
        await page.say("Hello")
        assert (await page.ended())["text"] == "Hello again."
    await scheduler().idle()


@pytest.mark.parametrize("gone", [conversation_hide, conversation_delete])
def test_what_was_said_is_neither_found_nor_read_any_more_though_its_turn_ends_only_now(
    alice: User, gone: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of a conversation that is deleted go some time after it is out of sight."""
    monkeypatch.setattr("apps.chat.conversations.services.in_slices", lambda remove: None)
    place = conversation_create(user_id=alice.pk)
    sent = message_send(user_id=alice.pk, text="The boat is called Albatross.", conversation=place.pk)
    gone(user_id=alice.pk, conversation_id=place.pk)
    turn_index(sent.turn_id)
    turn_capture(sent.turn_id)
    Message.objects.unscoped().update(created_at=timezone.now() - timedelta(hours=1))
    Turn.objects.unscoped().update(state="done")
    messages_capture_pending()
    messages_index_pending()
    assert not Passage.objects.exists()
    assert not CaptureWindow.objects.unscoped().exists()
    if gone is conversation_hide:
        conversation_restore(user_id=alice.pk, conversation_id=place.pk)
        messages_capture_pending()
        messages_index_pending()
        assert Passage.objects.exists()
        assert CaptureWindow.objects.unscoped().filter(state="waiting").exists()


async def test_nothing_is_kept_of_what_was_asked_while_its_turn_was_being_prepared(
    alice: User, model: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the page of a note that came up would go on saying beside which question it did."""
    model.fallback = reply("In the harbour.")
    text = "The boat is called Albatross and lies in the harbour."
    await in_db(lambda: memory_create(user_id=alice.pk, content=text))
    program, place = await program_of(alice), await conversation(alice)
    recorded: list[int] = []

    def record_late(**values: Any) -> None:
        if not recorded:
            conversation_delete(user_id=alice.pk, conversation_id=place)
        uses_record(**values)
        recorded.append(MemoryUse.objects.unscoped().count())

    monkeypatch.setattr("apps.memory.recall.injection.uses_record", record_late)
    body = {"message": "Where is my boat Albatross, in which harbour?", "conversation": place}
    await program.post("chat/", body)
    await scheduler().idle()
    assert recorded == [1]
    assert await in_db(MemoryUse.objects.unscoped().count) == 0
