"""Keeping the state that a change replaces."""

from typing import Any

from django.db.models import Max, Model, QuerySet

from apps.memory.history.states import note_state
from apps.memory.models import Action, FileAction, Memory, MemoryFile, MemoryFileRevision, MemoryRevision

from .provenance import MAX_REASON_CHARS, Change

MAX_REVISIONS = 500
"""Versions kept of one note; the oldest go first. More texts than are searchable as of their time (`MAX_FORMER`)."""
MAX_FILE_REVISIONS = 200
"""Versions kept of one file, which may be long; the oldest go first."""


def revision_keep(
    note: Memory, *, action: Action, change: Change, cycle: int, more: dict[str, Any] | None = None
) -> MemoryRevision:
    """Store what `note` is at the user's decay cycle `cycle`, before `action` changes it.

    `more` names the other notes of the change: `by` the note that takes its place (`made` for that, or there before),
    `merged` those it takes in, and going back, `to` which version it goes.
    """
    kept = MemoryRevision.objects.for_user(note.user_id).filter(memory_id=note.pk)
    version = _newest(kept) + 1
    kept.filter(version__lte=version - MAX_REVISIONS).delete()
    return MemoryRevision.objects.create(
        user_id=note.user_id,
        memory_id=note.pk,
        version=version,
        content=note.content,
        state=note_state(note, cycle) | ({"change": more} if more else {}),
        action=action,
        actor=change.actor,
        reason=change.reason[:MAX_REASON_CHARS],
    )


def file_revision_keep(file: MemoryFile, *, action: FileAction, change: Change) -> None:
    """Store what a file is, before `action` changes it."""
    kept = MemoryFileRevision.objects.for_user(file.user_id).filter(file_id=file.pk)
    version = _newest(kept) + 1
    kept.filter(version__lte=version - MAX_FILE_REVISIONS).delete()
    MemoryFileRevision.objects.create(
        user_id=file.user_id,
        file_id=file.pk,
        version=version,
        path=file.path,
        content=file.content,
        trust=file.trust,
        action=action,
        actor=change.actor,
        reason=change.reason[:MAX_REASON_CHARS],
    )


def _newest(kept: "QuerySet[Model]") -> int:
    """The number of the newest of some revisions; 0 where there are none."""
    return int(kept.aggregate(version=Max("version"))["version"] or 0)
