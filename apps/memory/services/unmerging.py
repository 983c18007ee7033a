"""What undoing a change of one note brings back in others."""

from uuid import UUID

from apps.core.errors import Conflict
from apps.memory.history.states import state_values
from apps.memory.models import Action, Memory, MemoryEdge, MemoryRevision, Relation, Status

from .applying import change_apply
from .deletion import memory_delete
from .provenance import Change


def undo_effects(note: Memory, *, since: int, change: Change) -> None:
    """Take back, in other notes, what the changes of `note` after its version `since` did to them."""
    if note.superseded_by_id is not None:
        _withdraw(note, note.superseded_by_id, change)
    kept = MemoryRevision.objects.for_user(note.user_id).filter(memory_id=note.pk, version__gte=since)
    for revision in kept.filter(action=Action.MERGED).order_by("-version"):
        for other_id in revision.state.get("change", {}).get("merged", []):
            _part(note, UUID(other_id), change)


def _withdraw(old: Memory, newer_id: UUID, change: Change) -> None:
    """Let the note that took the place of `old` give it back: gone, unless it was there before or stands for others."""
    newer = Memory.objects.for_user(old.user_id).select_for_update().filter(pk=newer_id).first()
    _unlink(newer_id, old)
    replaced = _last_replaced(old)
    if newer is None or replaced is None or not replaced.state["change"].get("made"):
        return
    if newer.status == Status.SUPERSEDED:
        message = "The note that replaced this one has itself been replaced since. Restore that one first."
        raise Conflict(message, code="replaced")
    others = Memory.objects.for_user(old.user_id).filter(superseded_by=newer).exclude(pk=old.pk)
    if not others.exists():
        memory_delete(user_id=old.user_id, memory_id=newer_id, change=change)


def _part(into: Memory, other_id: UUID, change: Change) -> None:
    """Bring back a note that was merged into another and still stands behind it."""
    notes = Memory.objects.for_user(into.user_id).select_for_update()
    other = notes.filter(pk=other_id, superseded_by=into).first()
    replaced = _last_replaced(other) if other is not None else None
    if other is not None and replaced is not None:
        _unlink(into.pk, other)
        change_apply(other, state_values(replaced), Action.UNDONE, change)


def _last_replaced(note: Memory) -> MemoryRevision | None:
    """The version of a replaced note that its replacement ended."""
    kept = MemoryRevision.objects.for_user(note.user_id).filter(memory_id=note.pk)
    return kept.filter(state__change__by__isnull=False).order_by("-version").first()


def _unlink(newer_id: UUID, old: Memory) -> None:
    edges = MemoryEdge.objects.for_user(old.user_id).filter(source_id=newer_id, target_id=old.pk)
    edges.filter(relation=Relation.SUPERSEDES).delete()
