"""Keeping the state that a change replaces."""

from typing import Any

from django.db.models import Max
from django.utils import timezone

from apps.memory.fields import clean_time
from apps.memory.models import Action, Memory, MemoryRevision, Status

from .provenance import Change

_KEPT_AS_IS = ("tier", "kind", "importance", "tags", "category", "status", "decay_rate")
_KEPT_TIMES = ("valid_from", "valid_to")


def revision_keep(note: Memory, *, action: Action, change: Change, cycle: int) -> MemoryRevision:
    """Store what `note` is now, before `action` changes it. Its priority is kept as it is at `cycle`."""
    newest = MemoryRevision.objects.for_user(note.user_id).filter(memory_id=note.pk).aggregate(Max("version"))
    state: dict[str, Any] = {name: getattr(note, name) for name in _KEPT_AS_IS}
    for name in _KEPT_TIMES:
        moment = getattr(note, name)
        state[name] = moment.isoformat() if moment else None
    state["priority"] = max(0.0, note.priority - note.decay_rate * (cycle - note.priority_cycle))
    return MemoryRevision.objects.create(
        user_id=note.user_id,
        memory_id=note.pk,
        version=(newest["version__max"] or 0) + 1,
        content=note.content,
        state=state,
        action=action,
        actor=change.actor,
        reason=change.reason[:200],
        created_at=timezone.now(),
    )


def state_values(revision: MemoryRevision) -> dict[str, Any]:
    """The fields of a note as a revision kept them; a state of being deleted counts as active."""
    values: dict[str, Any] = {"content": revision.content}
    values.update({name: revision.state[name] for name in (*_KEPT_AS_IS, "priority")})
    for name in _KEPT_TIMES:
        moment = revision.state[name]
        values[name] = clean_time(moment, field=name) if moment else None
    if values["status"] == Status.DELETED:
        values["status"] = Status.ACTIVE
    return values
