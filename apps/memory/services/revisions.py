"""Keeping the state that a change replaces."""

from typing import Any

from django.db.models import Max

from apps.memory.history.states import note_state
from apps.memory.models import Action, Memory, MemoryRevision

from .provenance import MAX_REASON_CHARS, Change


def revision_keep(
    note: Memory, *, action: Action, change: Change, cycle: int, more: dict[str, Any] | None = None
) -> MemoryRevision:
    """Store what `note` is at the user's decay cycle `cycle`, before `action` changes it.

    `more` names the other notes of the change: `by` the note that takes its place (`made` for that, or there before),
    `merged` those it takes in.
    """
    kept = MemoryRevision.objects.for_user(note.user_id).filter(memory_id=note.pk)
    newest = kept.aggregate(version=Max("version"))["version"] or 0
    return MemoryRevision.objects.create(
        user_id=note.user_id,
        memory_id=note.pk,
        version=newest + 1,
        content=note.content,
        state=note_state(note, cycle) | ({"change": more} if more else {}),
        action=action,
        actor=change.actor,
        reason=change.reason[:MAX_REASON_CHARS],
    )
