"""A process loses a conversation and takes it again while a write of the first time still waits for its database."""

import asyncio

import pytest

from apps.accounts.models import User
from apps.chat.conversations.services import conversation_create
from apps.chat.models import Conversation, Turn, TurnEvent
from apps.chat.stream.events import LoggedEvent
from apps.chat.turns.queue import conversation_take
from apps.chat.turns.store import EventLog, log_write, logs_write
from apps.core.jobs.leases import LeaseLost

pytestmark = pytest.mark.django_db


def taken(turn: Turn) -> EventLog:
    """The log of this process, which takes the conversation, with one event that waits to be stored."""
    numbers = conversation_take(turn.conversation_id)
    assert numbers is not None

    async def made() -> EventLog:
        log = EventLog(turn.conversation_id, numbers, lambda *_: None)
        log.emit(LoggedEvent(0, turn.id, "text_delta", {"text": "Good"}))
        return log

    return asyncio.run(made())


def counters(row: Conversation) -> tuple[int, int]:
    row.refresh_from_db()
    return row.last_seq, row.stored_seq


@pytest.fixture
def turn(alice: User) -> Turn:
    place = conversation_create(user_id=alice.pk)
    return Turn.objects.create(user=alice, conversation=place, position=1)


def test_it_stores_nothing_and_lowers_no_counter(turn: Turn) -> None:
    late, now = taken(turn).batch(), taken(turn).batch()
    assert logs_write([now]) == set()
    before = counters(turn.conversation)
    assert before[1] == now.events[-1].seq
    with pytest.raises(LeaseLost):
        log_write(late)
    with pytest.raises(LeaseLost):
        log_write(late, list)
    assert logs_write([late]) == {turn.conversation_id}
    assert counters(turn.conversation) == before
    assert list(TurnEvent.objects.values_list("seq", flat=True)) == [before[1]]


def test_it_keeps_no_other_conversation_from_being_stored(turn: Turn, alice: User) -> None:
    late = taken(turn).batch()
    taken(turn)
    other = Turn.objects.create(
        user=alice, conversation=conversation_create(user_id=alice.pk), position=1
    )
    assert logs_write([late, taken(other).batch()]) == {turn.conversation_id}
    assert list(TurnEvent.objects.values_list("turn_id", flat=True)) == [other.pk]
