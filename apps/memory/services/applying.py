"""The one way in which fields of an existing note change."""

from typing import Any

from django.utils import timezone

from apps.memory.fields import TIER_DEFAULTS, check_validity
from apps.memory.history.states import note_state
from apps.memory.indexing.notes import INDEXED_FIELDS, notes_reindex
from apps.memory.models import Action, Memory, MemoryRevision, Tier
from apps.memory.selectors import current_cycle

from .provenance import Change
from .revisions import revision_keep


def change_apply(
    note: Memory,
    values: dict[str, Any],
    action: Action,
    change: Change,
    *,
    more: dict[str, Any] | None = None,
) -> MemoryRevision | None:
    """Give a locked note these (cleaned) values, keep the state they replace, and bring search in step.

    A new text or tier makes the note as fresh as a new one, unless `priority` is among the values. `more` tells
    of a change that concerns other notes too and is kept in the revision. Without it, and where nothing differs,
    nothing is written and None returned.
    """
    cycle = current_cycle(note.user_id)
    changed = _differing(note, values, cycle)
    if not changed and not more:
        return None
    revision = revision_keep(note, action=action, change=change, cycle=cycle, more=more)
    _refresh_priority(note, changed)
    for name, value in changed.items():
        setattr(note, name, value)
    check_validity(note.valid_from, note.valid_to)
    if "priority" in changed:
        changed["priority_cycle"] = note.priority_cycle = cycle
    note.updated_at = timezone.now()
    note.save(update_fields=[*changed, "updated_at"])
    if INDEXED_FIELDS.intersection(changed):
        notes_reindex(note.user_id, [note])
    return revision


def differs(note: Memory, values: dict[str, Any]) -> bool:
    """Whether `change_apply` with these values would change a field."""
    return bool(_differing(note, values, current_cycle(note.user_id)))


def _differing(note: Memory, values: dict[str, Any], cycle: int) -> dict[str, Any]:
    """The values that the note does not have; the priority is compared with what decay has made of it."""
    present = vars(note) | {"priority": note_state(note, cycle)["priority"]}
    return {name: value for name, value in values.items() if present[name] != value}


def _refresh_priority(note: Memory, changed: dict[str, Any]) -> None:
    """A note whose text or tier changed starts over with its tier's priority."""
    priority, decay_rate = TIER_DEFAULTS[Tier(changed.get("tier", note.tier))]
    if "tier" in changed:
        changed.setdefault("decay_rate", decay_rate)
    if "tier" in changed or "content" in changed:
        changed.setdefault("priority", priority)
