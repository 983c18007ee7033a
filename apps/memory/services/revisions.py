"""Keeping the state that a change replaces."""

from collections.abc import Sequence
from typing import Any

from django.db.models import Max

from apps.memory.history.states import note_state
from apps.memory.models import Action, FileAction, Memory, MemoryFile, MemoryFileRevision, MemoryRevision

from .provenance import MAX_REASON_CHARS, Change

MAX_REVISIONS = 500
"""Versions kept of one note; the oldest go first. More texts than are searchable as of their time (`MAX_FORMER`)."""
MAX_FILE_REVISIONS = 200
"""Versions kept of one file, which may be long; the oldest go first."""
BATCH = 200


def revision_keep(
    note: Memory, *, action: Action, change: Change, cycle: int, more: dict[str, Any] | None = None
) -> MemoryRevision:
    """Store what `note` is at the user's decay cycle `cycle`, before `action` changes it.

    `more` names the other notes of the change: `by` the note that takes its place (`made` for that, or there before),
    `merged` those it takes in, and going back, `to` which version it goes.
    """
    kept = MemoryRevision.objects.for_user(note.user_id).filter(memory_id=note.pk)
    version = int(kept.aggregate(version=Max("version"))["version"] or 0) + 1
    if version > MAX_REVISIONS:
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


def file_revisions_keep(files: Sequence[MemoryFile], *, action: FileAction, change: Change) -> None:
    """Store what files of one user are, before `action` changes them."""
    if not files:
        return
    kept = MemoryFileRevision.objects.owned_by(files[0].user_id)
    of_files = kept.filter(file_id__in=[file.pk for file in files]).order_by()
    newest = dict(of_files.values_list("file_id").annotate(version=Max("version")))
    made = [
        MemoryFileRevision(
            user_id=file.user_id,
            file_id=file.pk,
            version=newest.get(file.pk, 0) + 1,
            path=file.path,
            content=file.content,
            trust=file.trust,
            action=action,
            actor=change.actor,
            reason=change.reason[:MAX_REASON_CHARS],
        )
        for file in files
    ]
    MemoryFileRevision.objects.bulk_create(made, batch_size=BATCH)
    for row in made:
        if row.version > MAX_FILE_REVISIONS:
            kept.filter(file_id=row.file_id, version__lte=row.version - MAX_FILE_REVISIONS).delete()
