"""Deleting notes: out of sight at once, gone for good after 30 days."""

from collections.abc import Collection
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.memory.indexing.notes import notes_reindex
from apps.memory.models import Action, DecayCycle, Memory, MemoryEdge, MemoryRevision, Status
from apps.memory.selectors import current_cycle, memory_get
from apps.search.documents import Source
from apps.search.services import documents_remove

from .provenance import BY_USER, Change
from .revisions import revision_keep


@transaction.atomic
def memory_delete(*, user_id: UUID, memory_id: UUID, change: Change = BY_USER) -> Memory:
    """Take a note out of rows, vectors and full text at once; `memory_restore` undoes it for 30 days."""
    note = memory_get(user_id, memory_id, lock=True)
    revision_keep(note, action=Action.DELETED, change=change, cycle=current_cycle(user_id))
    note.status = Status.DELETED
    note.deleted_at = note.updated_at = timezone.now()
    note.save(update_fields=["status", "deleted_at", "updated_at"])
    notes_reindex(user_id, [note])
    return note


@transaction.atomic
def memories_erase(*, user_id: UUID, memory_ids: Collection[UUID]) -> None:
    """Remove notes for good, with their passages, revisions and edges. There is no way back."""
    documents_remove(user_id=user_id, source=Source.MEMORY, source_ids=memory_ids)
    Memory.objects.with_deleted(user_id).filter(pk__in=memory_ids).delete()


@transaction.atomic
def user_forget(*, user_id: UUID) -> int:
    """Erase all notes of a user, before the account goes; returns how many there were."""
    MemoryEdge.objects.for_user(user_id).delete()
    MemoryRevision.objects.for_user(user_id).delete()
    DecayCycle.objects.filter(user_id=user_id).delete()
    removed, _ = Memory.objects.with_deleted(user_id).delete()
    return removed
