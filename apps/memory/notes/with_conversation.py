"""The notes that came from a conversation, deleted with it and brought back with it."""

from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from apps.memory.models import Action, Memory, MemoryRevision, Origin, Trust

from .changes import memory_delete
from .revisions import Change
from .undoing import memory_restore

REASON = "deleted with its conversation"


def notes_from(user_id: UUID, *conversation_ids: UUID) -> QuerySet[Memory]:
    """The notes that were made from what was said there, whatever their status but deleted, the newest first."""
    notes = Memory.objects.owned_by(user_id).filter(source_conversation_id__in=conversation_ids)
    return notes.order_by("-created_at", "-pk")


@transaction.atomic
def notes_delete_with(*, user_id: UUID, conversation_id: UUID, actor: Origin = Origin.USER) -> int:
    """Deletes these notes, restorable for 30 days as any; how many there were."""
    change = Change(actor=actor, trust=Trust.USER, reason=REASON)
    keys = list(notes_from(user_id, conversation_id).values_list("pk", flat=True))
    for key in sorted(keys):
        memory_delete(user_id=user_id, memory_id=key, change=change)
    return len(keys)


def notes_gone_with(user_id: UUID, conversation_id: UUID, since: datetime) -> set[UUID]:
    """Those that `notes_delete_with` deleted since then and that can be restored; none that was deleted by itself."""
    deleted = Memory.objects.restorable(user_id).filter(
        source_conversation_id=conversation_id, deleted_at__gte=since
    )
    asked = MemoryRevision.objects.owned_by(user_id).filter(
        memory_id__in=deleted.values("pk"),
        action=Action.DELETED,
        reason=REASON,
        created_at__gte=since,
    )
    return set(asked.values_list("memory_id", flat=True))


@transaction.atomic
def notes_restore_with(*, user_id: UUID, conversation_id: UUID, since: datetime) -> int:
    """Brings back what `notes_gone_with` names; how many."""
    keys = sorted(notes_gone_with(user_id, conversation_id, since))
    for key in keys:
        memory_restore(user_id=user_id, memory_id=key)
    return len(keys)
