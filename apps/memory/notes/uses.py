"""The record of when notes came up and why."""

from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

from django.core.cache import cache
from django.db import transaction
from django.db.models import F
from django.utils import timezone

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
    notes = Memory.objects.owned_by(user_id).filter(pk__in=reasons)
    there = set(notes.values_list("pk", flat=True))
    asked = truncated(" ".join(question.split()), MAX_QUESTION_CHARS)
    MemoryUse.objects.bulk_create(
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
    )
    used = {"use_count": F("use_count") + 1} if used_in != UsedIn.SEARCHED else {}
    notes.update(access_count=F("access_count") + 1, last_accessed=timezone.now(), **used)
    kept: dict[UUID, int] = {}
    surplus = []
    rows = MemoryUse.objects.owned_by(user_id).filter(memory_id__in=there).order_by("-id")
    for key, memory_id in rows.values_list("pk", "memory_id"):
        kept[memory_id] = kept.get(memory_id, 0) + 1
        if kept[memory_id] > KEPT:
            surplus.append(key)
    if surplus:
        MemoryUse.objects.owned_by(user_id).filter(pk__in=surplus).delete()


def note_opened(*, user_id: UUID, memory_id: UUID) -> None:
    """Count that its owner opened a note, once within OPENED_AGAIN."""
    if cache.add(f"note-opened:{user_id}:{memory_id}", 1, OPENED_AGAIN.total_seconds()):
        notes = Memory.objects.owned_by(user_id).filter(pk=memory_id)
        notes.update(use_count=F("use_count") + 1)
