"""Writes of a runner while a turn runs and when it ends; each function is one transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.agent.events import Event, TurnFailed, TurnStopped
from apps.agent.services import Reason
from apps.chat.log import LoggedEvent, events_store
from apps.chat.models import Conversation, Turn, TurnState
from apps.chat.runner.work import message_ids
from apps.chat.services.messages import Draft, message_append, turn_close
from apps.core.jobs.leases import PROCESS


@dataclass(frozen=True, slots=True, kw_only=True)
class LogWrite:
    """Events to store in one conversation's log, and how far its numbers are reserved then."""

    conversation_id: UUID
    events: Sequence[LoggedEvent]
    next_seq: int
    reserved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a turn ended: its state, the event that says so, and the text that no message holds yet.

    `reason` is set where the turn ended early (`stopped`, `failed`, `interrupted`).
    """

    turn_id: UUID
    state: TurnState
    event: Event
    reason: Reason | None = None
    partial: Sequence[dict[str, Any]] = ()
    waiting_for: Sequence[dict[str, Any]] = ()
    usage: dict[str, Any] = field(default_factory=dict)


@transaction.atomic
def log_write(write: LogWrite, change: Callable[[], list[LoggedEvent]] | None = None) -> list[LoggedEvent]:
    """Stores events, makes `change` and stores the events it tells of, all or nothing. Returns those last ones.

    Raises LeaseLost when the conversation is not ours any more.
    """
    Conversation.lease_extend(write.conversation_id)
    more = [
        replace(line, seq=write.next_seq + index) for index, line in enumerate(change() if change else [])
    ]
    _store(write, [*write.events, *more])
    return more


@transaction.atomic
def logs_write(writes: Sequence[LogWrite]) -> list[UUID]:
    """Stores the events of many conversations in one transaction; returns those that are not ours any more."""
    held = set(
        Conversation.objects.unscoped()
        .filter(id__in=[write.conversation_id for write in writes], runner=PROCESS)
        .values_list("id", flat=True)
    )
    for write in writes:
        if write.conversation_id in held:
            _store(write, write.events)
    return [write.conversation_id for write in writes if write.conversation_id not in held]


def _store(write: LogWrite, events: Sequence[LoggedEvent]) -> None:
    values = {"last_seq": write.reserved}
    if events:
        values["stored_seq"] = events[-1].seq
    Conversation.lease_extend(write.conversation_id, **values)
    events_store(write.conversation_id, events)


def message_save(turn_id: UUID, draft: Draft) -> list[LoggedEvent]:
    """Adds a message to the turn."""
    message_append(Turn.objects.unscoped().get(id=turn_id), draft)
    return []


def turn_finish(outcome: Outcome, seq: int) -> list[LoggedEvent]:
    """Writes how the turn ended or what it waits for, and tells of it."""
    turn = Turn.objects.unscoped().get(id=outcome.turn_id)
    lines: list[LoggedEvent] = []
    if outcome.reason:
        closed = turn_close(turn, reason=outcome.reason, partial=outcome.partial, seq=seq)
        lines = [LoggedEvent.of(turn.id, event) for event in closed]
    turn.state = outcome.state
    turn.waiting_for = list(outcome.waiting_for)
    turn.usage = outcome.usage or turn.usage
    turn.ended_at = None if outcome.state == TurnState.WAITING else timezone.now()
    if isinstance(outcome.event, TurnFailed):
        turn.error_code, turn.error_message = outcome.event.code, outcome.event.message
    turn.save(update_fields=["state", "waiting_for", "usage", "ended_at", "error_code", "error_message"])
    Conversation.objects.unscoped().filter(id=turn.conversation_id).update(updated_at=timezone.now())
    return [*lines, LoggedEvent.of(turn.id, outcome.event, messages=message_ids(turn))]


def stopped(
    turn_id: UUID, reason: Reason, partial: Sequence[dict[str, Any]], event: Event | None = None
) -> Outcome:
    """The outcome of a turn that ended early, by the user's wish unless `event` says otherwise."""
    states: dict[Reason, TurnState] = {
        "stopped": TurnState.STOPPED,
        "failed": TurnState.FAILED,
        "interrupted": TurnState.INTERRUPTED,
    }
    return Outcome(
        turn_id=turn_id, state=states[reason], event=event or TurnStopped(), reason=reason, partial=partial
    )
