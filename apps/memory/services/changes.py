"""Changes of a note that leave it in place: each keeps the state it replaces as a revision."""

from typing import Any, Unpack
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.core.errors import NotFound
from apps.memory.fields import TIER_DEFAULTS, MemoryChanges, check_validity, clean_changes
from apps.memory.indexing import INDEXED_FIELDS, notes_index
from apps.memory.models import Action, Memory, MemoryRevision, Status, Tier
from apps.memory.selectors import current_cycle, memory_get
from apps.memory.states import note_state, state_values

from .provenance import BY_USER, Change
from .revisions import revision_keep


@transaction.atomic
def memory_update(
    *, user_id: UUID, memory_id: UUID, change: Change = BY_USER, **changes: Unpack[MemoryChanges]
) -> Memory:
    """Change the given fields of a note; its id stays and its former state is kept as a revision.

    The old text is out of search when this returns. A new text or tier makes the note as fresh as a new
    one, unless `priority` is given. Where nothing differs nothing is written.
    """
    note = memory_get(user_id, memory_id, lock=True)
    return _change(note, clean_changes(changes), Action.UPDATED, change)


@transaction.atomic
def memory_archive(*, user_id: UUID, memory_id: UUID, change: Change = BY_USER) -> Memory:
    """Put a note away: out of search and injection, still browsable; `memory_restore` brings it back."""
    note = memory_get(user_id, memory_id, lock=True)
    return _change(note, {"status": Status.ARCHIVED}, Action.ARCHIVED, change)


@transaction.atomic
def memory_undo(*, user_id: UUID, memory_id: UUID, version: int, change: Change = BY_USER) -> Memory:
    """Bring a note back to what it was in `version` (1 is the first); this is itself a change with a revision.

    Raises NotFound where the note never had that version.
    """
    note = memory_get(user_id, memory_id, lock=True)
    revision = MemoryRevision.objects.for_user(user_id).filter(memory_id=memory_id, version=version).first()
    if revision is None:
        raise NotFound(f"This note has no earlier version {version}.", code="unknown_version")
    return _change(note, state_values(revision), Action.UNDONE, change)


def _change(note: Memory, values: dict[str, Any], action: Action, change: Change) -> Memory:
    cycle = current_cycle(note.user_id)
    present = note_state(note, cycle)
    changed = {name: value for name, value in values.items() if _differs(note, present, name, value)}
    if not changed:
        return note
    revision_keep(note, action=action, change=change, cycle=cycle)
    _refresh_priority(note, changed)
    for name, value in changed.items():
        setattr(note, name, value)
    check_validity(note.valid_from, note.valid_to)
    if "priority" in changed:
        changed["priority_cycle"] = note.priority_cycle = cycle
    note.updated_at = timezone.now()
    note.save(update_fields=[*changed, "updated_at"])
    if INDEXED_FIELDS.intersection(changed):
        notes_index(note.user_id, [note])
    return note


def _differs(note: Memory, present: dict[str, Any], name: str, value: object) -> bool:
    """Whether a field is to change; the priority is compared with what decay has made of it."""
    return bool((present["priority"] if name == "priority" else getattr(note, name)) != value)


def _refresh_priority(note: Memory, changed: dict[str, Any]) -> None:
    """A note whose text or tier changed starts over with its tier's priority."""
    priority, decay_rate = TIER_DEFAULTS[Tier(changed.get("tier", note.tier))]
    if "tier" in changed:
        changed.setdefault("decay_rate", decay_rate)
    if "tier" in changed or "content" in changed:
        changed.setdefault("priority", priority)
