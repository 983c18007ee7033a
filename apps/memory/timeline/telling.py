"""Events in the words a page shows: what the note said, what became different, what took its place."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from apps.memory.addressing import addressed
from apps.memory.history.diffs import Piece, text_diff
from apps.memory.history.states import note_state
from apps.memory.history.versions import CREATED
from apps.memory.models import Action, Memory, MemoryRevision, Status

from .events import GROUPS, Event

DID = {
    CREATED: "Saved",
    Action.UPDATED: "Changed",
    Action.MERGED: "Merged",
    Action.UNDONE: "Went back",
    Action.ACCEPTED: "Accepted",
    Action.SUPERSEDED: "Replaced",
    Action.ARCHIVED: "Archived",
    Action.DELETED: "Deleted",
    Action.RESTORED: "Brought back",
}
FIELDS = {
    "kind": "kind",
    "importance": "importance",
    "tier": "how long it is kept",
    "tags": "tags",
    "category": "category",
    "valid_from": "since when it holds",
    "valid_to": "until when it holds",
}
"""Names of a note's fields that a reader may care for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event: `text` as the note read then, or `diff` where its words changed; `fields` that changed beside them."""

    event: Event
    note: Memory
    text: str
    diff: tuple[Piece, ...] = ()
    fields: tuple[str, ...] = ()
    replaced_by: str = ""

    @property
    def did(self) -> str:
        waits = self.event.action == CREATED and self.note.status == Status.PENDING
        return "Proposed" if waits else DID[self.event.action]

    @property
    def group(self) -> str:
        return next(name for name, actions in GROUPS.items() if self.event.action in actions)


def told(user_id: UUID, events: Sequence[Event]) -> list[Told]:
    """The events with their words; three queries however many there are."""
    keys = {event.note_id for event in events}
    notes = Memory.objects.with_deleted(user_id).select_related("superseded_by").in_bulk(keys)
    states = _states(user_id, events)
    return [_told(event, notes[event.note_id], states) for event in events if event.note_id in notes]


def by_day(events: Sequence[Told]) -> list[tuple[date, list[Told]]]:
    """The events of each day where the reader is, in their order."""
    return [(day, list(rows)) for day, rows in groupby(events, lambda row: _day(row.event.at))]


def _day(moment: datetime) -> date:
    return timezone.localtime(moment).date()


def _states(user_id: UUID, events: Sequence[Event]) -> dict[tuple[UUID, int], MemoryRevision]:
    """The revisions that the events need: the version each ended, the one after it, and first versions."""
    wanted = Q(pk__in=[])
    changed = [event for event in events if event.version]
    numbers = {number for event in changed for number in (event.version, event.version + 1)}
    wanted |= Q(memory_id__in={event.note_id for event in changed}, version__in=numbers)
    wanted |= Q(memory_id__in={event.note_id for event in events if not event.version}, version=1)
    rows = MemoryRevision.objects.owned_by(user_id).filter(wanted)
    return {(row.memory_id, row.version): row for row in rows}


def _told(event: Event, note: Memory, states: dict[tuple[UUID, int], MemoryRevision]) -> Told:
    now = note.content, note_state(note, note.priority_cycle)
    if not event.version:
        first = states.get((note.pk, 1))
        return Told(event=event, note=note, text=addressed(first.content if first else now[0]))
    before, later = states[note.pk, event.version], states.get((note.pk, event.version + 1))
    text, state = (later.content, later.state) if later else now
    differs = text != before.content
    replaced = note.superseded_by if event.action == Action.SUPERSEDED else None
    return Told(
        event=event,
        note=note,
        text=addressed(text),
        diff=tuple(text_diff(addressed(before.content), addressed(text))) if differs else (),
        fields=() if replaced else _changed(before.state, state),
        replaced_by=addressed(replaced.content) if replaced and not differs else "",
    )


def _changed(before: dict[str, Any], after: dict[str, Any]) -> tuple[str, ...]:
    return tuple(words for name, words in FIELDS.items() if before.get(name) != after.get(name))
