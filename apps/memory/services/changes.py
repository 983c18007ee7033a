"""Changes of a note that leave it in place: each keeps the state it replaces as a revision."""

from typing import Unpack
from uuid import UUID

from django.db import transaction

from apps.core.errors import Conflict
from apps.memory.fields import MemoryChanges, clean_changes
from apps.memory.models import Action, Memory, Proposal, Status, Trust
from apps.memory.selectors import memory_get
from apps.memory.trust import least_trust

from .applying import change_apply
from .proposals import proposal_instead
from .provenance import BY_USER, Change

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
