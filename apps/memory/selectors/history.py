"""A note's history."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from apps.memory.history.spans import spans_of
from apps.memory.history.versions import NoteVersion, note_versions
from apps.memory.models import Memory, MemoryRevision

from .notes import current_cycle, memory_get


def note_history(user_id: UUID, memory_id: UUID) -> list[NoteVersion]:
    """The versions of a note that are kept, newest first."""
    note = memory_get(user_id, memory_id)
    revisions = MemoryRevision.objects.owned_by(user_id).filter(memory_id=memory_id).order_by("version")
    return note_versions(note, list(revisions), current_cycle(user_id))[::-1]


def texts_at(user_id: UUID, memory_ids: Sequence[UUID], moment: datetime) -> dict[UUID, str]:
    """The text that those of the notes had at a moment whose text was changed since."""
    kept = MemoryRevision.objects.owned_by(user_id).filter(memory_id__in=memory_ids).order_by("version")
    revisions: dict[UUID, list[MemoryRevision]] = {}
    for row in kept:
        revisions.setdefault(row.memory_id, []).append(row)
    notes = Memory.objects.owned_by(user_id).filter(pk__in=revisions)
    texts: dict[UUID, str] = {}
    for note in notes:
        *former, _ = spans_of(note, revisions[note.pk])
        for span in former:
            if span.end and span.start <= moment < span.end:
                texts[note.pk] = span.text
    return texts
