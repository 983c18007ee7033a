"""Changes of a note that leave it in place: each keeps the state it replaces as a revision."""

from typing import Unpack
from uuid import UUID

from django.db import transaction

from apps.core.errors import Conflict, NotFound
from apps.memory.fields import MemoryChanges, clean_changes
from apps.memory.history.states import state_values
from apps.memory.models import Action, Memory, MemoryRevision, Proposal, Status, Trust
from apps.memory.selectors import memory_get
from apps.memory.trust import least_trust

from .applying import change_apply
from .proposals import proposal_instead
from .provenance import BY_USER, Change
from .unmerging import undo_effects

WAITS = "This note waits for the user's review; only the user can change it."


@transaction.atomic
def memory_update(
    *, user_id: UUID, memory_id: UUID, change: Change = BY_USER, **changes: Unpack[MemoryChanges]
) -> Memory:
    """Change the given fields of a note; its id stays and its former state is kept as a revision.

    The old text is out of search when this returns. A new text or tier makes the note as fresh as a new
    one, unless `priority` is given. Where nothing differs nothing is written.

    A text that the user writes by hand is the user's from then on; any other writer's lowers the trust to the least
    of both. A change that has to be reviewed (see `review.status_for`) leaves the note as it is: what is returned
    then is another, pending note that proposes it. A pending note is changed by the user alone (Conflict).
    """
    note = memory_get(user_id, memory_id, lock=True)
    values = clean_changes(changes)
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


@transaction.atomic
def memory_undo(*, user_id: UUID, memory_id: UUID, version: int, change: Change = BY_USER) -> Memory:
    """Bring a note back to what it was in `version` (1 is the first); this is itself a change with a revision.

    With it goes what the changes after that version did to other notes: a note that had replaced this one is
    deleted (restorable), notes that were merged into it come back, the links that said so are removed.

    Raises NotFound where the note never had that version, Conflict where the note that replaced it has itself been
    replaced since.
    """
    note = memory_get(user_id, memory_id, lock=True)
    revision = MemoryRevision.objects.for_user(user_id).filter(memory_id=memory_id, version=version).first()
    if revision is None:
        raise NotFound(f"This note has no earlier version {version}.", code="unknown_version")
    undo_effects(note, since=version, change=change)
    change_apply(note, state_values(revision), Action.UNDONE, change)
    return note
