"""A connection that breaks while its transaction is committed: whether it took effect, the rows alone can say."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from django.db import OperationalError

from apps.accounts.models import User
from apps.chat.conversations.services import conversation_create
from apps.chat.models import Message, Role, Turn, TurnEvent
from apps.chat.stream.events import LoggedEvent, events_of
from apps.chat.turns import actor, store
from apps.chat.turns.queue import conversation_take
from apps.chat.turns.store import (
    RESERVE,
    EventLog,
    LogWrite,
    Numbers,
    log_written,
    logs_store,
    message_append,
)
from apps.core.db import pool
from apps.core.db.pool import CountsErrors, in_db
from apps.core.jobs.leases import LeaseLost
from tests.chat.client import connected
from tests.chat.rows import conversation, messages, said
from tests.peers.anthropic_server import AnthropicServer, reply

Break = Callable[..., None]


@pytest.fixture
def breaks(monkeypatch: pytest.MonkeyPatch) -> Break:
    """`breaks()`: the connection breaks in the next commit, after that took effect, or (`after=False`) before; `here`: in the next
    one of this thread."""
    commit, planned = CountsErrors._commit, list[tuple[bool, int]]()

    def committed(self: Any) -> None:
        if not planned or planned[0][1] not in {0, threading.get_ident()}:
            return commit(self)
        if planned.pop()[0]:
            commit(self)
        raise OperationalError("server closed the connection unexpectedly")

    def plan(*, after: bool = True, here: bool = False) -> None:
        planned[:] = [(after, threading.get_ident() if here else 0)]

    monkeypatch.setattr(CountsErrors, "_commit", committed)
    return plan


class Log:
    """The log of a conversation that this process runs, and what its watchers were sent."""

    def __init__(self, turn: Turn, numbers: Numbers) -> None:
        self.turn = turn
        self.sent: list[int] = []
        self.events = EventLog(turn.conversation_id, numbers, self._send)

    def _send(self, _: object, after: int, events: Sequence[LoggedEvent]) -> None:
        assert after == (self.sent[-1] if self.sent else 0)
        self.sent += [event.seq for event in events]

    def line(self, text: str) -> LoggedEvent:
        return LoggedEvent(0, self.turn.pk, "text_delta", {"text": text})

    def emit(self, text: str) -> None:
        self.events.emit(self.line(text))

    def answer(self) -> list[LoggedEvent]:
        """A change: a message, and an event that tells of it."""
        message_append(self.turn, role=Role.ASSISTANT, blocks=said("An answer"))
        return [self.line("change ")]

    async def stored(self) -> list[tuple[int, str]]:
        rows = TurnEvent.objects.filter(conversation_id=self.turn.conversation_id).order_by("seq")
        events = await in_db(lambda: events_of(rows))
        return [(event.seq, event.payload["text"]) for event in events]

    async def answers(self) -> int:
        return await in_db(Message.objects.unscoped().filter(turn=self.turn).count)


def taken(user: User) -> tuple[Turn, Numbers]:
    """A turn in a conversation of its own, which this process takes."""
    place = conversation_create(user_id=user.pk)
    numbers = conversation_take(place.pk)
    assert numbers is not None
    return Turn.objects.create(user=user, conversation=place, position=1), numbers


@pytest.fixture
async def log(alice: User) -> Log:
    return Log(*await in_db(taken, alice))


@pytest.mark.parametrize("after", [True, False])
async def test_events_are_stored_once_and_those_of_other_conversations_too(
    log: Log, bob: User, breaks: Break, after: bool
) -> None:
    other = Log(*await in_db(taken, bob))
    both = [log.events, other.events]
    log.emit("one ")
    breaks(after=after)
    with pytest.raises(OperationalError):
        await logs_store(both)
    log.emit("two ")
    other.emit("else ")
    assert await logs_store(both) == set()
    assert await log.stored() == [(1, "one "), (2, "two ")]
    assert await other.stored() == [(1, "else ")]
    log.emit("three ")
    await logs_store(both)
    assert (await log.stored())[2:] == [(3, "three ")]


async def test_events_that_are_stored_are_no_hindrance_to_what_is_written_next(
    log: Log, breaks: Break
) -> None:
    log.emit("one ")
    breaks()
    with pytest.raises(OperationalError):
        await log.events.flush()
    await log.events.commit(log.answer)
    assert await log.stored() == [(1, "one "), (2, "change ")]
    assert (log.sent, await log.answers()) == ([1, 2], 1)


async def test_a_change_that_took_effect_counts_as_made(log: Log, breaks: Break) -> None:
    log.emit("one ")
    breaks()
    await log.events.commit(log.answer)
    log.emit("two ")
    await log.events.flush()
    assert await log.stored() == [(1, "one "), (2, "change "), (3, "two ")]
    assert (log.sent, await log.answers()) == ([1, 2, 3], 1)


async def test_one_that_did_is_not_made_again_where_the_database_does_not_say_so_at_once(
    log: Log, breaks: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[LogWrite] = []

    def away(write: LogWrite) -> list[LoggedEvent] | None:
        asked.append(write)
        if len(asked) < 3:
            raise OperationalError("away")
        return log_written(write)

    monkeypatch.setattr(store, "log_written", away)
    breaks()
    await log.events.commit(log.answer)
    assert (log.sent, await log.answers(), len(asked)) == ([1], 1, 3)


async def test_a_change_that_took_no_effect_is_made_again(log: Log, breaks: Break) -> None:
    log.emit("one ")
    breaks(after=False)
    await log.events.commit(log.answer)
    assert await log.stored() == [(1, "one "), (2, "change ")]
    assert (log.sent, await log.answers()) == ([1, 2], 1)


async def test_a_log_of_which_nobody_can_say_what_is_stored_writes_no_more(
    log: Log, breaks: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(write: object) -> None:
        raise OperationalError("away")

    log.emit("one ")
    breaks()
    monkeypatch.setattr(pool, "AWAY_SECONDS", 0)
    monkeypatch.setattr(store, "log_written", away)
    with pytest.raises(OperationalError):
        await log.events.commit(log.answer)
    with pytest.raises(LeaseLost):
        await log.events.commit(log.answer)
    await log.events.flush()
    assert await logs_store([log.events]) == set()
    assert await log.answers() == 1
    numbers = await in_db(conversation_take, log.turn.conversation_id)
    assert numbers is not None
    assert (numbers.stored, numbers.first > log.events.last_seq + RESERVE // 2) == (2, True)


async def test_an_answer_whose_commit_broke_stands_once_and_the_turn_ends_well(
    alice: User, model: AnthropicServer, breaks: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    def append(turn: Turn, **values: Any) -> None:
        message_append(turn, **values)
        breaks(here=True)

    monkeypatch.setattr(actor, "message_append", append)
    model.add(reply("It is four."))
    async with connected(alice) as page:
        place = await conversation(alice)
        await page.say("Two and two?", conversation=place)
        assert (await page.ended())["type"] == "response"
    assert [blocks for role, _, blocks in await messages(place) if role == "assistant"] == [
        said("It is four.")
    ]
