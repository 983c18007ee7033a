"""Keeping the state of a file that a change replaces."""

from django.db.models import Max

from apps.memory.models import FileAction, MemoryFile, MemoryFileRevision

from .provenance import MAX_REASON_CHARS, Change

MAX_REVISIONS = 200
"""Versions kept of one file; the oldest go first."""


def file_revision_keep(file: MemoryFile, *, action: FileAction, change: Change) -> None:
    """Store what a file is, before `action` changes it."""
    kept = MemoryFileRevision.objects.for_user(file.user_id).filter(file_id=file.pk)
    version = (kept.aggregate(version=Max("version"))["version"] or 0) + 1
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
    kept.filter(version__lte=version - MAX_REVISIONS).delete()
