"""Changes of notes and files: who makes them and why, and the state that a change replaces."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Max

from apps.core.http.shapes import clean_time
from apps.memory.models import (
    Action,
    Memory,
    MemoryRevision,
    Origin,
    Status,
    Trust,
)

MAX_REASON_CHARS = 200
BY_HAND = frozenset({Origin.USER, Origin.API})
"""The user's own origins: the page, and programs with the user's own token. Nothing of theirs waits for review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Names who makes a note or changes one, and why."""

    actor: Origin
    trust: Trust  # of the words it brings
    reason: str = ""  # at most MAX_REASON_CHARS; shown in the history
    sensitive: bool = False  # of a kind that the user may want to see first
    conversation_id: UUID | None = None  # where a new note, or a proposal, comes from
    message_id: UUID | None = None

    @property
    def by_hand(self) -> bool:
        """Whether the user made it, on a page or with a program of theirs."""
        return self.actor in BY_HAND and self.trust == Trust.USER


BY_USER = Change(actor=Origin.USER, trust=Trust.USER)
BY_ASSISTANT = Change(actor=Origin.ASSISTANT, trust=Trust.ASSISTANT)
BY_PROGRAM = Change(actor=Origin.MCP, trust=Trust.ASSISTANT)

_PLAIN = (
    *("tier", "kind", "importance", "tags", "category", "status", "decay_rate", "trust"),
    *("occasions", "occasions_by", "review_reason"),
)
_TIMES = ("valid_from", "valid_to")


def note_state(note: Memory, cycle: int) -> dict[str, Any]:
    """The JSON-ready state of a note, its priority as it is at the user's decay cycle `cycle`."""
    state: dict[str, Any] = {name: getattr(note, name) for name in _PLAIN}
    for name in _TIMES:
        moment = getattr(note, name)
        state[name] = moment.isoformat() if moment else None
    state["superseded_by"] = str(note.superseded_by_id) if note.superseded_by_id else None
    state["priority"] = max(0.0, note.priority - note.decay_rate * (cycle - note.priority_cycle))
    return state


def time_in(revision: MemoryRevision, name: str) -> datetime | None:
    """A time of the note in a version, as `valid_to`."""
    moment = revision.state[name]
    return clean_time(moment, field=name) if moment else None


def state_values(revision: MemoryRevision, *, replaced_by: UUID | None = None) -> dict[str, Any]:
    """The values that give a note the state of a revision again; `replaced_by` is the note that replaced it then, or was to,
    where that one still does.

    That it was deleted or superseded then counts as active otherwise: going back to a text is meant to bring it back.
    """
    values: dict[str, Any] = {"content": revision.content, "priority": revision.state["priority"]}
    values.update({name: revision.state[name] for name in _PLAIN})
    values.update({name: time_in(revision, name) for name in _TIMES})
    ended = values["status"] == Status.SUPERSEDED
    if replaced_by is None and (ended or revision.state["superseded_by"]):
        values["valid_to"] = None
    if values["status"] == Status.DELETED or (ended and replaced_by is None):
        values["status"] = str(Status.ACTIVE)
    return {**values, "superseded_by_id": replaced_by}


MAX_REVISIONS = 500
"""Versions kept of one note; the oldest go first. More texts than are searchable as of their time (`MAX_FORMER`)."""


def revision_keep(
    note: Memory, *, action: Action, change: Change, cycle: int, more: dict[str, Any] | None = None
) -> None:
    """Store what `note` is at the user's decay cycle `cycle`, before `action` changes it.

    `more` names the other notes of the change: `by` the note that takes its place (`made` for that, or there before),
    `merged` those it takes in, and going back, `to` which version it goes.
    """
    kept = MemoryRevision.objects.for_user(note.user_id).filter(memory_id=note.pk)
    version = int(kept.aggregate(version=Max("version"))["version"] or 0) + 1
    if version > MAX_REVISIONS:
        kept.filter(version__lte=version - MAX_REVISIONS).delete()
    MemoryRevision.objects.create(
        user_id=note.user_id,
        memory_id=note.pk,
        version=version,
        content=note.content,
        state=note_state(note, cycle) | ({"change": more} if more else {}),
        action=action,
        actor=change.actor,
        reason=change.reason[:MAX_REASON_CHARS],
    )
