"""Changes of a note that leave it in place: each keeps the state it replaces as a revision. Fields of a note change in
`change_apply` alone."""

from typing import Any, Unpack
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.core.errors import Conflict
from apps.memory.fields import TIER_DEFAULTS, MemoryChanges, check_validity, clean_changes
from apps.memory.history.states import note_state
from apps.memory.indexing.notes import INDEXED_FIELDS, notes_reindex
from apps.memory.models import Action, Memory, MemoryRevision, Proposal, Status, Tier, Trust
from apps.memory.models.folding import folded
from apps.memory.selectors import current_cycle, memory_get
from apps.memory.trust import least_trust

from .proposals import proposal_instead
from .provenance import BY_USER, Change
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
    changed |= folded(changed)
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


WAITS = "This note waits for the user's review; only the user can change it."
REPLACED = "This note was replaced by another. Restore it to have it back in the place of that one."


@transaction.atomic
def memory_update(
    *, user_id: UUID, memory_id: UUID, change: Change = BY_USER, **changes: Unpack[MemoryChanges]
) -> Memory:
    """Change the given fields of a note; its id stays and its former state is kept as a revision.

    The old text is out of search when this returns. A new text or tier makes the note as fresh as a new
    one, unless `priority` is given. Where nothing differs nothing is written.

    A text that the user writes by hand is the user's from then on; any other writer's lowers the trust to the least
    of both. A change that has to be reviewed (see `review.status_for`) leaves the note as it is: what is returned
    then is another, pending note that proposes it. A pending note is changed by the user alone (Conflict), and one that
    was replaced becomes active by `memory_restore`, which takes away what replaced it (Conflict).
    """
    note = memory_get(user_id, memory_id, lock=True)
    values = clean_changes(changes)
    if note.status == Status.SUPERSEDED and values.get("status") in {Status.ACTIVE, Status.PENDING}:
        raise Conflict(REPLACED, code="replaced", field="status")
    if not change.by_hand:
        if note.status == Status.PENDING:
            raise Conflict(WAITS, code="waits_for_review")
        waiting = proposal_instead(note, Proposal.UPDATE, values, change)
        if waiting is not None:
            return waiting
    if values.get("content", note.content) != note.content:
        values["trust"] = Trust.USER if change.by_hand else least_trust(note.trust, change.words)
    change_apply(note, values, Action.UPDATED, change)
    return note


@transaction.atomic
def memory_archive(*, user_id: UUID, memory_id: UUID, change: Change = BY_USER) -> Memory:
    """Put a note away: out of search and injection, still browsable; `memory_restore` brings it back."""
    note = memory_get(user_id, memory_id, lock=True)
    change_apply(note, {"status": Status.ARCHIVED}, Action.ARCHIVED, change)
    return note
