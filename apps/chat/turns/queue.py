"""The next work of a conversation's runner, decided and claimed in one transaction."""

import logging
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from apps.agent.selectors import toolcalls_undecided
from apps.agent.services import Reason
from apps.agent.turn.events import BranchChosen, TurnFailed, TurnQueued, TurnStopped
from apps.agent.turn.events import Build as BuildEvent
from apps.builder.builds.messages import messages_to_log
from apps.builder.builds.selectors import builds_in
from apps.builder.models import Follower
from apps.builder.shapes import BuilderMessageOutput
from apps.chat.conversations.messages import message_json, versions_of
from apps.chat.models import (
    OPEN_STATES,
    Conversation,
    Message,
    MessageKind,
    Role,
    Turn,
    TurnEvent,
    TurnStatus,
)
from apps.chat.stream.events import LoggedEvent, rows_of, text_after
from apps.chat.turns.store import RESERVE, Numbers, message_ids, position_next, turn_close
from apps.core.db.prepared import prepared, prepared_update
from apps.core.db.writing import update_all, users_of
from apps.core.jobs.fair import one_by_one
from apps.core.jobs.leases import PROCESS

logger = logging.getLogger(__name__)
INTERRUPTION = TurnFailed(
    "interrupted",
    "Izzy was interrupted while answering. What was written so far is kept; send it again to go on.",
)


@dataclass(kw_only=True)
class Work:
    """`events` are those to log now, `turn_id` a turn that is ours to run, `stop` the request to stop the running one."""

    events: list[LoggedEvent] = field(default_factory=list)
    turn_id: UUID | None = None
    resumed: bool = False
    stop: bool = False


@transaction.atomic
def conversation_take(conversation_id: UUID, runner: str = PROCESS) -> Numbers | None:
    """A fresh block of sequence numbers, and whose conversation it is; None where another process runs it."""
    if not Conversation.lease_take(conversation_id, runner, last_seq=F("last_seq") + RESERVE):
        return None
    [(stored, last, user_id)] = _numbers(conversation_id)
    return Numbers(stored, last - RESERVE + 1, last, user_id)


@prepared
def _numbers(conversation_id: UUID) -> QuerySet[Conversation, tuple[int, int, UUID]]:
    row = Conversation.objects.unscoped().filter(id=conversation_id)
    return row.values_list("stored_seq", "last_seq", "user_id")


def work_waits(conversation_id: UUID, running: UUID | None) -> bool:
    """Whether `work_next` may find something. Most looks find nothing, and those do not wait for their turn to write."""
    if not Conversation.lease_held(conversation_id):
        return True  # which it says
    turns = _turns_with_news_briefly(conversation_id)
    others = [each for each in turns if each != (running, True, False)]
    return bool(others or _builds_with_news(conversation_id))


@transaction.atomic(savepoint=False)
def work_next(conversation_id: UUID, running: UUID | None) -> Work:
    """Takes up what others asked for; when no turn runs here (`running` None), claims the next one.

    A turn whose row says running while it does not run here was left by a crash: it ends as interrupted. Raises
    LeaseLost.
    """
    Conversation.lease_extend(conversation_id)
    turns = _turns_with_news(conversation_id)
    work = Work(events=[_line(turn) for turn in turns if not turn.announced])
    if _builds_with_news(conversation_id):
        work.events += build_events(conversation_id)
    announced = [(turn.id, [True, False]) for turn in turns if not turn.announced]
    update_all(Turn, ("announced", "chosen"), announced)
    if running is not None:
        work.stop = any(turn.id == running and turn.stop_requested for turn in turns)
        return work
    by_state = {state: [turn for turn in turns if turn.state == state] for state in OPEN_STATES}
    for turn in by_state[TurnStatus.RUNNING]:
        work.events += turn_interrupt(turn)
    _claim(work, by_state[TurnStatus.WAITING], by_state[TurnStatus.QUEUED])
    return work


def _line(turn: Turn) -> LoggedEvent:
    """The event to send of a turn that has news: of a queued one with the client's name for the message, the message itself, and
    what it replaced."""
    if turn.state != TurnStatus.QUEUED:
        if turn.chosen:
            return LoggedEvent.of(turn.id, BranchChosen())
        return LoggedEvent.of(turn.id, TurnStopped(), messages=message_ids(turn))
    shown = None
    if not turn.by_izzy:
        [message] = opening_message(turn.id)
        versions = versions_of([turn])[turn.id] if turn.place else ()
        files = None if turn.attached else ()
        shown = message_json(message, turn, files=files, versions=versions)
    return LoggedEvent.of(
        turn.id,
        TurnQueued(turn.client_id),
        message=shown,
        replaces=[str(value) for value in _replaced_by(turn.id)],
        title=turn.conversation.title,
    )


def build_events(conversation_id: UUID) -> list[LoggedEvent]:
    """The `build` events that are due in the conversation's log. Call it inside the transaction that writes it.

    They belong to the turns that asked for the build; for one that is gone there are none.
    """
    lines = []
    for follower, messages in messages_to_log(conversation_id=conversation_id):
        if Turn.objects.for_user(follower.user_id).filter(id=follower.turn_id).exists():
            build_id = str(follower.build_id)
            listed = builds_in(follower.user_id, conversation_id)
            replaced = {row["build_id"]: row["replaces"] for row in listed if row["replaces"]}
            extra = {"replaces": replaced[build_id]} if build_id in replaced else {}
            lines += [
                LoggedEvent.of(
                    follower.turn_id, BuildEvent(build_id, BuilderMessageOutput.dump(message)), **extra
                )
                for message in messages
            ]
    return lines


@transaction.atomic
def conversation_release(conversation_id: UUID, last_seq: int, *, at_once: bool = False) -> bool:
    """Gives the conversation back unless something came in meanwhile; then False, and it stays ours. Numbers above
    `last_seq` were never handed out.

    With `at_once` what came in is left to whoever takes the conversation up next.
    """
    # Which also locks the row: who stores a turn now comes before or after.
    Conversation.lease_extend(conversation_id)
    turns = [] if at_once else _turns_with_news(conversation_id)
    held_back = any(turn.state == TurnStatus.WAITING for turn in turns)
    for turn in turns:
        if held_back and turn.by_izzy and turn.state == TurnStatus.QUEUED and turn.announced:
            continue
        if (
            turn.state != TurnStatus.WAITING
            or turn.stop_requested
            or not turn.announced
            or _is_decided(turn)
        ):
            return False
    Conversation.lease_release(conversation_id, last_seq=last_seq)
    return True


def turn_interrupt(turn: Turn) -> list[LoggedEvent]:
    """Ends a turn that a crash left running: keeps what was produced and closes open tool calls."""
    newest = turn.messages.order_by("position").last()
    seen = newest.seq if newest else 0
    text = text_after(turn.id, seen)
    partial = [{"type": "text", "text": text}] if text.strip() else []
    closed = turn_close(turn, reason="interrupted", partial=partial, seq=turn.conversation.stored_seq)
    turn.error_code, turn.error_message = INTERRUPTION.code, INTERRUPTION.message
    _end(turn, TurnStatus.INTERRUPTED)
    return [
        *(LoggedEvent.of(turn.id, event) for event in closed),
        LoggedEvent.of(turn.id, INTERRUPTION, messages=message_ids(turn)),
    ]


def _news(conversation_id: UUID) -> QuerySet[Turn]:
    rows = Turn.objects.unscoped().filter(conversation_id=conversation_id)
    news = Q(state__in=OPEN_STATES) | Q(announced=False)
    return rows.filter(news).order_by("position")


@prepared
def _turns_with_news(conversation_id: UUID) -> QuerySet[Turn]:
    return _news(conversation_id).select_related("conversation")


@prepared
def _turns_with_news_briefly(conversation_id: UUID) -> QuerySet[Turn, tuple[UUID, bool, bool]]:
    return _news(conversation_id).values_list("id", "announced", "stop_requested")


@prepared
def _builds_with_news(conversation_id: UUID) -> QuerySet[Follower, UUID]:
    rows = Follower.objects.unscoped().filter(has_news=True, conversation_id=conversation_id)
    return rows.values_list("pk", flat=True)


@prepared
def opening_message(turn_id: UUID) -> QuerySet[Message]:
    """The user's message that the turn answers, or the notice by which Izzy opened it."""
    kinds = [MessageKind.TEXT, MessageKind.NOTICE]
    return Message.objects.unscoped().filter(turn_id=turn_id, role=Role.USER, kind__in=kinds)


@prepared
def _replaced_by(turn_id: UUID) -> QuerySet[Message, UUID]:
    return Message.objects.unscoped().filter(superseded_by=turn_id).values_list("id", flat=True)


@prepared
def _later_messages(conversation_id: UUID, position: int) -> QuerySet[Message, UUID]:
    """Messages after the position, but those of turns that wait in the queue."""
    rows = Message.objects.unscoped().filter(conversation_id=conversation_id, position__gt=position)
    return rows.exclude(turn__state=TurnStatus.QUEUED).values_list("id", flat=True)[:1]


def _claim(work: Work, waiting: list[Turn], queued: list[Turn]) -> None:
    """Settles what waits for the user, then takes the oldest turn that can run.

    What Izzy says by itself neither declines what the user is asked nor goes ahead of it.
    """
    if waiting and all(turn.by_izzy for turn in queued):
        queued = []
    for turn in waiting:
        if turn.stop_requested:
            work.events += _end_early(turn, "stopped")
        elif _is_decided(turn):  # also where the user has gone on since: what they said to it holds
            if _take(turn.id, turn.state, timezone.now()):
                work.turn_id, work.resumed = turn.id, True
                return
        elif queued:
            work.events += _end_early(turn, "superseded")
    for turn in queued:
        # A message that queued behind a running turn moves after what that turn has produced.
        [message] = opening_message(turn.id)
        if _later_messages(turn.conversation_id, message.position):
            message.position = position_next(turn.conversation_id)
            message.save(update_fields=["position"])
        if turn.stop_requested:
            work.events += _end_early(turn, "stopped")
        elif _take(turn.id, turn.state, timezone.now()):
            work.turn_id = turn.id
            return


def _is_decided(turn: Turn) -> bool:
    return turn.state == TurnStatus.WAITING and not toolcalls_undecided(
        user_id=turn.user_id, turn_id=turn.id
    )


@prepared_update
def _take(turn_id: UUID, state: str, now: datetime) -> tuple[QuerySet[Turn], dict[str, Any]]:
    """Moves a turn to running, if this update is the first of all processes' that may try."""
    return Turn.objects.unscoped().filter(id=turn_id, state=state), {
        "state": TurnStatus.RUNNING,
        "started_at": Coalesce(F("started_at"), now),
        "attempt": F("attempt") + 1,
        "waiting_for": [],
    }


def _end_early(turn: Turn, reason: Reason) -> list[LoggedEvent]:
    """Ends a waiting or queued turn: stopped by the user, or done because they went on with something else."""
    closed = turn_close(turn, reason=reason)
    lines = [LoggedEvent.of(turn.id, event) for event in closed]
    if reason == "stopped":
        lines.append(LoggedEvent.of(turn.id, TurnStopped(), messages=message_ids(turn)))
    _end(turn, TurnStatus.STOPPED if reason == "stopped" else TurnStatus.DONE)
    return lines


def _end(turn: Turn, state: TurnStatus) -> None:
    turn.state, turn.ended_at, turn.waiting_for = state, timezone.now(), []
    turn.save(update_fields=["state", "ended_at", "waiting_for", "error_code", "error_message"])


def turns_in(state: TurnStatus) -> "QuerySet[Turn]":
    """The turns of all users in a state."""
    return Turn.objects.unscoped().filter(state=state)


def turns_interrupt() -> None:
    """Ends the turns that were running in a process whose lease has run out."""
    turns = Turn.objects.unscoped().filter(
        Conversation.lease_free("conversation__"), state=TurnStatus.RUNNING
    )
    one_by_one(users_of(turns), _interrupt_own)


def _interrupt_own(whose: tuple[UUID, QuerySet[Turn]]) -> None:
    _, running = whose
    for conversation_id in list(running.values_list("conversation_id", flat=True).distinct()):
        _interrupt(conversation_id)


@transaction.atomic
def _interrupt(conversation_id: UUID) -> None:
    numbers = conversation_take(conversation_id)
    if numbers is None:
        return
    seq = numbers.first
    for turn in Turn.objects.unscoped().filter(
        conversation_id=conversation_id, state=TurnStatus.RUNNING
    ):
        events = [
            LoggedEvent(seq + index, line.turn_id, line.type, line.payload)
            for index, line in enumerate(turn_interrupt(turn))
        ]
        TurnEvent.objects.bulk_create(rows_of(conversation_id, events))
        seq += len(events)
        logger.warning("turn %s was interrupted; what it had produced is kept", turn.id)
    Conversation.lease_release(conversation_id, stored_seq=seq - 1, last_seq=seq - 1)
