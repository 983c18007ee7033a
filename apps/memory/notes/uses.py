"""The record of when notes came up and why."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.cache import cache
from django.db import transaction
from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from apps.core.db.prepared import prepared, prepared_update
from apps.core.db.writing import insert_all
from apps.core.text import truncated
from apps.memory.models import Memory, MemoryUse, UsedIn
from apps.memory.models.uses import MAX_QUESTION_CHARS, MAX_WHY_CHARS

KEPT = 10
"""Uses kept of each note, the newest."""
OPENED_AGAIN = timedelta(hours=1)
"""A note that is opened again within this time was opened once."""


@transaction.atomic
def uses_record(
    *,
    user_id: UUID,
    reasons: Mapping[UUID, str],
    used_in: UsedIn,
    question: str = "",
    conversation_id: UUID | None = None,
    message_id: UUID | None = None,
) -> None:
    """Keep that these notes (id -> why, a sentence) were read beside a question. What a search found counts as no use.

    A note that is gone meanwhile is passed over.
    """
    if not reasons:
        return
    there = _there(user_id, list(reasons))
    asked = truncated(" ".join(question.split()), MAX_QUESTION_CHARS)
    insert_all(
        [
            MemoryUse(
                user_id=user_id,
                memory_id=key,
                used_in=used_in,
                question=asked,
                reason=truncated(why, MAX_WHY_CHARS),
                conversation_id=conversation_id,
                message_id=message_id,
            )
            for key, why in reasons.items()
            if key in there
        ]
    )
    _count(user_id, there, timezone.now(), int(used_in != UsedIn.SEARCHED))
    if surplus := _surplus(user_id, there):
        MemoryUse.objects.owned_by(user_id).filter(pk__in=surplus).delete()


@prepared
def _there(user_id: UUID, memory_ids: list[UUID]) -> QuerySet[Memory, UUID]:
    notes = Memory.objects.owned_by(user_id).filter(pk__among=memory_ids)
    return notes.values_list("pk", flat=True)


@prepared_update
def _count(
    user_id: UUID, memory_ids: list[UUID], now: datetime, used: int
) -> tuple[QuerySet[Memory], dict[str, Any]]:
    counts = {"access_count": F("access_count") + 1, "use_count": F("use_count") + used}
    notes = Memory.objects.owned_by(user_id).filter(pk__among=memory_ids)
    return notes, {"last_accessed": now, **counts}


@prepared
def _surplus(user_id: UUID, memory_ids: list[UUID]) -> QuerySet[MemoryUse, UUID]:
    rows = MemoryUse.objects.owned_by(user_id).filter(memory__id__among=memory_ids)
    newer = Window(RowNumber(), partition_by="memory_id", order_by="-id")
    return rows.annotate(newer=newer).filter(newer__gt=KEPT).values_list("pk", flat=True)


def note_opened(*, user_id: UUID, memory_id: UUID) -> None:
    """Count that its owner opened a note, once within OPENED_AGAIN."""
    if cache.add(f"note-opened:{user_id}:{memory_id}", 1, OPENED_AGAIN.total_seconds()):
        notes = Memory.objects.owned_by(user_id).filter(pk=memory_id)
        notes.update(use_count=F("use_count") + 1)
