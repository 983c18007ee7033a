"""The way back of notes that were deleted, archived or replaced."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.core.errors import NotFound
from apps.memory.indexing.notes import notes_reindex
from apps.memory.models import Action, Memory, MemoryRevision, Status, is_gone
from apps.memory.selectors import current_cycle

from .provenance import BY_USER, Change
from .revisions import revision_keep
from .undoing import memory_undo


@transaction.atomic
def memory_restore(*, user_id: UUID, memory_id: UUID, change: Change = BY_USER) -> Memory:
    """Bring back a deleted, archived or superseded note as it was before; any other is returned unchanged.

    For a superseded note this undoes what superseded it, as `memory_undo` does. Raises NotFound for a note deleted
    more than 30 days ago, swept or not.
    """
    note = Memory.objects.with_deleted(user_id).select_for_update().filter(pk=memory_id).first()
    if note is None or is_gone(note.deleted_at):
        raise NotFound("There is no note with this id that could be restored.")
    if note.status == Status.SUPERSEDED:
        replaced = _ended_by(note, Action.SUPERSEDED, Action.MERGED)
        if replaced is not None:
            return memory_undo(user_id=user_id, memory_id=memory_id, version=replaced.version, change=change)
    if note.status not in {Status.DELETED, Status.ARCHIVED}:
        return note
    ended = _ended_by(note, Action.DELETED if note.status == Status.DELETED else Action.ARCHIVED)
    former = str(ended.state["status"]) if ended else Status.ACTIVE
    revision_keep(note, action=Action.RESTORED, change=change, cycle=current_cycle(user_id))
    note.status = str(Status.ACTIVE) if former == Status.DELETED else former
    note.deleted_at, note.updated_at = None, timezone.now()
    note.save(update_fields=["status", "deleted_at", "updated_at"])
    notes_reindex(user_id, [note])
    return note


def _ended_by(note: Memory, *actions: Action) -> MemoryRevision | None:
    """The newest version that a change of these kinds ended."""
    kept = MemoryRevision.objects.for_user(note.user_id).filter(memory_id=note.pk, action__in=actions)
    return kept.order_by("-version").first()
