"""What a note was before."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.memory.former import spans_of
from apps.memory.models import Action, Memory, MemoryRevision, Origin
from apps.memory.states import note_state

from .notes import current_cycle, memory_get

CREATED = "created"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteVersion:
    """One state of a note: what it held from `at` on, and who made it so, why. `current` is the note itself."""

    version: int
    content: str
    state: dict[str, Any]
    action: str
    actor: str
    reason: str
    at: datetime
    current: bool

    @property
    def action_label(self) -> str:
        """What made it, in a word: Saved, Changed, Merged …"""
        return "Saved" if self.action == CREATED else str(Action(self.action).label)

    @property
    def actor_label(self) -> str:
        """The actor in words: You, Izzy, API …"""
        return str(Origin(self.actor).label)


def note_history(user_id: UUID, memory_id: UUID) -> list[NoteVersion]:
    """All versions of a note, newest first."""
    note = memory_get(user_id, memory_id)
    revisions = MemoryRevision.objects.for_user(user_id).filter(memory_id=memory_id).order_by("version")
    return _versions(note, list(revisions), current_cycle(user_id))[::-1]


def _versions(note: Memory, revisions: Sequence[MemoryRevision], cycle: int) -> list[NoteVersion]:
    contents = [(revision.content, revision.state) for revision in revisions]
    contents.append((note.content, note_state(note, cycle)))
    made = [(CREATED, note.origin, "", note.created_at)]
    made += [(row.action, row.actor, row.reason, row.created_at) for row in revisions]
    return [
        NoteVersion(
            version=number,
            content=content,
            state=state,
            action=action,
            actor=actor,
            reason=reason,
            at=at,
            current=number == len(made),
        )
        for number, ((content, state), (action, actor, reason, at)) in enumerate(
            zip(contents, made, strict=True), start=1
        )
    ]


def texts_at(user_id: UUID, memory_ids: Sequence[UUID], moment: datetime) -> dict[UUID, str]:
    """The text that those of the notes had at a moment whose text was changed since."""
    kept = MemoryRevision.objects.for_user(user_id).filter(memory_id__in=memory_ids).order_by("version")
    revisions: dict[UUID, list[MemoryRevision]] = {}
    for row in kept:
        revisions.setdefault(row.memory_id, []).append(row)
    notes = Memory.objects.for_user(user_id).filter(pk__in=revisions)
    texts: dict[UUID, str] = {}
    for note in notes:
        *former, _ = spans_of(note, revisions[note.pk])
        for span in former:
            if span.end and span.start <= moment < span.end:
                texts[note.pk] = span.text
    return texts
