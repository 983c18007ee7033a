"""Writes of a runner while a turn runs and when it ends: the events, numbered, sent on at once and stored in batches; the messages;
and how a turn that ended early is made whole."""

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.db import Error, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from apps.agent.model.messages import readable_text
from apps.agent.models import ToolCall
from apps.agent.services import Reason, toolcalls_close_open
from apps.agent.turn.events import Event, ToolResult, TurnFailed, TurnStopped
from apps.chat.models import Conversation, Message, MessageKind, Role, Turn, TurnStatus
from apps.chat.stream.events import LoggedEvent, events_after, rows_of
from apps.core.db.pool import in_db, through_outage
from apps.core.db.prepared import prepared, prepared_update
from apps.core.db.writing import claim, insert_all, update_all
from apps.core.jobs.leases import EXTEND_SECONDS, LeaseLost
from apps.core.text import canonical_json

CLOSING_WORDS: dict[Reason, str] = {
    "stopped": "(Stopped by the user.)",
    "interrupted": "(No answer: the server was interrupted.)",
    "failed": "(No answer: the turn failed.)",
    "superseded": "(The user went on instead of answering.)",
}
"""Stands in the model's history for a turn that ended unanswered: roles keep alternating."""
RESERVE = 1000
"""Sequence numbers are reserved in blocks, so that those handed out but not stored at a crash never come again."""
Publish = Callable[[UUID, int, Sequence[LoggedEvent]], None]
"""Called with the conversation, the number of the event before these, and these."""
Change = Callable[[], Sequence[LoggedEvent] | None]
"""A change of rows, which returns the events to log with it."""


class Numbers(NamedTuple):
    """Sequence numbers of a conversation's events."""

    stored: int  # of the newest event in the table
    first: int  # that may be handed out
    last: int
    user_id: UUID  # whose conversation it is


def position_next(conversation_id: UUID) -> int:
    """A fresh place at the end of the conversation. Call it inside a transaction."""
    _position_move(conversation_id)
    return _position(conversation_id)[0]


@prepared_update
def _position_move(conversation_id: UUID) -> tuple[QuerySet[Conversation], dict[str, Any]]:
    row = Conversation.objects.unscoped().filter(id=conversation_id)
    return row, {"last_position": F("last_position") + 1}


@prepared
def _position(conversation_id: UUID) -> QuerySet[Conversation, int]:
    row = Conversation.objects.unscoped().filter(id=conversation_id)
    return row.values_list("last_position", flat=True)


def message_append(
    turn: Turn,
    *,
    role: Role,
    blocks: list[dict[str, Any]],
    kind: MessageKind = MessageKind.TEXT,
    stop_reason: str = "",
    round: int = 0,
    seq: int = 0,
) -> None:
    """Adds a message of the turn at the end of its conversation. Call it inside a transaction."""
    text = readable_text(blocks) if kind == MessageKind.TEXT else ""
    message = Message(
        user_id=turn.user_id,
        conversation_id=turn.conversation_id,
        turn=turn,
        position=position_next(turn.conversation_id),
        role=role,
        kind=kind,
        blocks=canonical_json(blocks),
        text=text,
        speaker=role if text else "",
        stop_reason=stop_reason,
        round=round,
        seq=seq,
        indexed=not text,
        captured=not text,
    )
    insert_all([message])


def turn_close(
    turn: Turn, *, reason: Reason, partial: Sequence[dict[str, Any]] = (), seq: int = 0
) -> list[Event]:
    """Leaves the turn's messages in a state from which the conversation can go on.

    Stores the text that was under way, ends open tool calls with an error result and, where no answer stands at
    the end, adds closing words that only the model sees. Returns a `tool_result` event for each call it ended.
    Idempotent; call it inside a transaction.
    """
    last = turn.messages.order_by("position").last()
    if partial:
        after = (last.round if last else 0) + 1
        message_append(
            turn, role=Role.ASSISTANT, blocks=list(partial), stop_reason=reason, round=after, seq=seq
        )
        return []
    if last is None:
        return []
    events: list[Event] = []
    if last.role == Role.ASSISTANT:
        if not any(block.get("type") == "tool_use" for block in json.loads(last.blocks)):
            return []
        events = _close_calls(turn, last, reason)
    words = [{"type": "text", "text": CLOSING_WORDS[reason]}]
    message_append(turn, role=Role.ASSISTANT, kind=MessageKind.CLOSING, blocks=words, round=last.round)
    return events


def _close_calls(turn: Turn, message: Message, reason: Reason) -> list[Event]:
    """Ends the open calls of an assistant message and stores the results of all of its calls."""
    calls = ToolCall.objects.for_user(turn.user_id).filter(turn_id=turn.id, round=message.round)
    open_ids = [call.id for call in calls if call.is_open]
    results = toolcalls_close_open(
        turn_id=turn.id,
        round=message.round,
        blocks=json.loads(message.blocks),
        user_id=turn.user_id,
        reason=reason,
    )
    if results:
        kind = MessageKind.TOOL_RESULTS
        message_append(turn, role=Role.USER, kind=kind, blocks=results, round=message.round)
    return [
        ToolResult(str(call.id), call.name, call.result, call.is_error, call.duration_ms)
        for call in calls.filter(id__in=open_ids)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWrite:
    """Events to store in one conversation's log, and how far its numbers are reserved then: further with each write, so that the
    row names the last one that was committed."""

    conversation_id: UUID
    events: Sequence[LoggedEvent]
    next_seq: int
    reserved: int

    def above(self, stored_seq: int) -> list[LoggedEvent]:
        """The events that are still to be stored. A connection may break when those of the write before are committed already:
        they are in this one again."""
        return [event for event in self.events if event.seq > stored_seq]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOutcome:
    """How a turn ended: its state, the event that says so, and the text that no message holds yet.

    `reason` is set where the turn ended early (`stopped`, `failed`, `interrupted`).
    """

    turn_id: UUID
    state: TurnStatus
    event: Event
    reason: Reason | None = None
    partial: Sequence[dict[str, Any]] = ()
    usage: dict[str, Any] = field(default_factory=dict)


def log_write(
    write: LogWrite, change: Change | None = None, where: Callable[[], bool] | None = None
) -> list[LoggedEvent] | None:
    """Stores events, makes `change` and stores the events that it returns, all or nothing. Returns those last ones; None, and
    nothing is stored, `where` that says no. Raises LeaseLost when the conversation is not ours any more."""
    if where is not None and not where():
        return None
    with transaction.atomic():
        # First of all: it locks the row.
        Conversation.lease_extend(write.conversation_id, last_seq=write.reserved)
        [(_, _, stored)] = _counters([write.conversation_id])
        lines = (change() if change else None) or []
        more = [replace(line, seq=write.next_seq + index) for index, line in enumerate(lines)]
        if events := [*write.above(stored), *more]:
            Conversation.lease_extend(write.conversation_id, stored_seq=events[-1].seq)
        insert_all(rows_of(write.conversation_id, events))
    return more


@transaction.atomic
def log_written(write: LogWrite) -> list[LoggedEvent] | None:
    """The events that `log_write` would have returned, where the connection broke when its transaction was committed already; None where
    that was not. Raises LeaseLost."""
    Conversation.lease_extend(write.conversation_id)  # it waits for a transaction that is still to end
    [(_, reserved, _)] = _counters([write.conversation_id])
    if reserved != write.reserved:
        return None
    return events_after(write.conversation_id, write.next_seq - 1, limit=RESERVE)


@transaction.atomic
def logs_write(writes: Sequence[LogWrite]) -> set[UUID]:
    """Stores the events of many conversations in one transaction; returns those that are not ours any more."""
    with claim():  # of many users: each log is written by the process alone that holds its lease
        lost = Conversation.leases_extend([write.conversation_id for write in writes])
        rows = {row[0]: row[1:] for row in _counters([write.conversation_id for write in writes])}
        ours = []
        for write in writes:
            reserved, stored = rows.get(write.conversation_id, (0, 0))
            if reserved > write.reserved:  # this process lost it and took it again
                lost.add(write.conversation_id)
            elif write.conversation_id not in lost and (events := write.above(stored)):
                ours.append((write, events))
        update_all(
            Conversation,
            ("last_seq", "stored_seq"),
            [(write.conversation_id, (write.reserved, events[-1].seq)) for write, events in ours],
        )
        insert_all([row for write, events in ours for row in rows_of(write.conversation_id, events)])
    return lost


@prepared
def _counters(conversation_ids: list[UUID]) -> QuerySet[Conversation, tuple[UUID, int, int]]:
    rows = Conversation.objects.unscoped().filter(pk__among=conversation_ids)
    return rows.values_list("id", "last_seq", "stored_seq")


def turn_ask(turn_id: UUID, ask: Event) -> list[LoggedEvent]:
    """Writes what the turn asks its user, and returns the event of that. Other calls of the round may still run: whoever comes
    to the conversation meanwhile can answer, too."""
    [turn] = _turn(turn_id)
    asked = [*turn.waiting_for, {"type": ask.type, **ask.fields()}]
    update_all(Turn, ("waiting_for",), [(turn.id, [asked])])
    return [LoggedEvent.of(turn.id, ask)]


def turn_finish(outcome: TurnOutcome, seq: int) -> list[LoggedEvent]:
    """Writes how the turn ended or that it waits, and returns the events of that."""
    [turn] = _turn(outcome.turn_id)
    lines: list[LoggedEvent] = []
    if outcome.reason:
        closed = turn_close(turn, reason=outcome.reason, partial=outcome.partial, seq=seq)
        lines = [LoggedEvent.of(turn.id, event) for event in closed]
    turn.state = outcome.state
    if outcome.state != TurnStatus.WAITING:
        turn.waiting_for = []
    turn.usage = outcome.usage or turn.usage
    turn.ended_at = None if outcome.state == TurnStatus.WAITING else timezone.now()
    if isinstance(outcome.event, TurnFailed):
        turn.error_code, turn.error_message = outcome.event.code, outcome.event.message
    names = ("state", "waiting_for", "usage", "ended_at", "error_code", "error_message")
    update_all(Turn, names, [(turn.id, [getattr(turn, name) for name in names])])
    update_all(Conversation, ("updated_at",), [(turn.conversation_id, [timezone.now()])])
    return [*lines, LoggedEvent.of(turn.id, outcome.event, messages=message_ids(turn))]


def stopped(
    turn_id: UUID, reason: Reason, partial: Sequence[dict[str, Any]], event: Event | None = None
) -> TurnOutcome:
    """The outcome of a turn that ended early, at the user's request unless `event` says otherwise."""
    state = TurnStatus(reason)
    return TurnOutcome(
        turn_id=turn_id, state=state, event=event or TurnStopped(), reason=reason, partial=partial
    )


def message_ids(turn: Turn) -> list[str]:
    """The ids of the turn's assistant messages that people read, in order."""
    return [str(value) for value in _answers(turn.id)]


@prepared
def _turn(turn_id: UUID) -> QuerySet[Turn]:
    return Turn.objects.unscoped().filter(id=turn_id)


@prepared
def _answers(turn_id: UUID) -> QuerySet[Message, UUID]:
    rows = Message.objects.unscoped().filter(turn_id=turn_id, role=Role.ASSISTANT, kind=MessageKind.TEXT)
    return rows.order_by("position").values_list("id", flat=True)


class EventLog:
    """The events that a conversation's runner emits. `publish` gets every event at once, before it is stored; what must not be lost
    (the end of a turn) goes through `commit`, which stores it first. Whoever writes holds `lock`."""

    def __init__(self, conversation_id: UUID, numbers: Numbers, publish: Publish) -> None:
        self.conversation_id = conversation_id
        self.lock = asyncio.Lock()
        self.given_back = False  # whoever takes the conversation next begins with its rows
        self.pending: list[LoggedEvent] = []  # not stored yet
        self.written_at = asyncio.get_running_loop().time()
        self.last_seq = numbers.first - 1  # the number of the newest event
        self._published, self._reserved = numbers.stored, numbers.last
        self._publish = publish

    def emit(self, line: LoggedEvent) -> None:
        """Numbers an event, sends it on, and has it stored with the next batch."""
        self.last_seq += 1
        event = LoggedEvent(self.last_seq, line.turn_id, line.type, line.payload)
        self.pending.append(event)
        self._publish(self.conversation_id, self._published, [event])
        self._published = event.seq

    async def commit(self, change: Change) -> None:
        """Makes a change of rows together with everything emitted so far, then sends on the events of the change; once, also where
        the database is away for a while. Await it `shielded`: a change under way is not called back."""
        async with self.lock:
            await through_outage(partial(self.write, change))

    async def flush(self) -> None:
        """Stores what was emitted so far, so that rows show all of it."""
        async with self.lock:
            if self.pending and not self.given_back:
                with suppress(LeaseLost):
                    await self.write()

    async def write(self, change: Change | None = None, where: Callable[[], bool] | None = None) -> None:
        """Stores what waits, and makes a change with it; neither `where` that says no, before anything is written. Hold the
        lock. Raises LeaseLost."""
        if self.given_back:
            raise LeaseLost(str(self.conversation_id))
        write = self.batch()
        try:
            more = await in_db(log_write, write, change, where)
        except Error:
            # Events that are stored all the same are left out next time; a change must not be taken for one that was not made.
            if change is None or (more := await self._written(write)) is None:
                raise
        if more is None:
            return
        del self.pending[: len(write.events)]
        self.written_at = asyncio.get_running_loop().time()
        self.last_seq += len(more)
        if more:
            self._publish(self.conversation_id, self._published, more)
            self._published = more[-1].seq

    async def _written(self, write: LogWrite) -> list[LoggedEvent] | None:
        """As `log_written`. Where the database does not say, nobody knows which numbers are taken: the log writes no more, and
        the turn is taken up from the rows, as after a crash."""
        try:
            return await through_outage(partial(in_db, log_written, write))
        except Error:
            self.given_back = True
            raise

    def batch(self) -> LogWrite:
        """The events to store now: the first of those that are pending. Hold the lock."""
        next_seq = self.last_seq + 1
        self._reserved += 1
        if self._reserved - next_seq < RESERVE // 2:
            self._reserved = next_seq + RESERVE
        return LogWrite(
            conversation_id=self.conversation_id,
            events=tuple(self.pending),
            next_seq=next_seq,
            reserved=self._reserved,
        )


async def logs_store(logs: Iterable[EventLog]) -> set[UUID]:
    """Stores what waits in those of the logs that nobody is at, in one transaction, extending the leases for which it is time;
    returns the conversations that are not ours any more."""
    now = asyncio.get_running_loop().time()
    due = [
        log
        for log in logs
        if (log.pending or now - log.written_at > EXTEND_SECONDS)
        and not log.given_back
        and not log.lock.locked()
    ]
    if not due:
        return set()
    for log in due:
        await log.lock.acquire()
    try:
        writes = [log.batch() for log in due]
        lost = await in_db(logs_write, writes)
        for log, write in zip(due, writes, strict=True):
            del log.pending[: len(write.events)]
            log.written_at = asyncio.get_running_loop().time()
        return lost
    finally:
        for log in due:
            log.lock.release()
