"""A note that takes the place of another: what held before stays findable as of its time."""

from datetime import datetime
from typing import Any, Unpack
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.core.errors import Conflict, InvalidInput, NotFound
from apps.memory.fields import MemoryFields, clean_changes
from apps.memory.models import Action, Memory, MemoryEdge, Origin, Proposal, Relation, Status
from apps.memory.selectors import memory_get, open_contradictions

from .changes import change_apply
from .creation import memory_create
from .proposals import INHERITED, proposal_instead
from .provenance import BY_USER, FROM_USER, Change, Provenance


@transaction.atomic
def memory_supersede(
    *,
    user_id: UUID,
    memory_id: UUID,
    content: str,
    provenance: Provenance = FROM_USER,
    change: Change = BY_USER,
    **fields: Unpack[MemoryFields],
) -> Memory:
    """A new note in the place of an old one; returns the new one, which inherits what `fields` leave out.

    The old note is superseded: out of search but as of a time before `valid_from` (now unless given; where it lies
    ahead the old note holds until then). An old note that was replaced already stands for the newest in its chain.
    Trust is that of `provenance`. Where the user has to see the change first, what is returned is the pending note
    that proposes it, and the old one stays as it is.

    Raises NotFound for an unknown note, Conflict where it, or what replaced it, waits for review or was deleted.
    """
    old = newest_of(memory_get(user_id, memory_id, lock=True))
    if old.status == Status.PENDING:
        raise Conflict("This note waits for review; decide on it first.", code="waits_for_review")
    values = clean_changes({"valid_from": None, **fields, "content": content})
    start: datetime | None = values["valid_from"]
    if not change.by_hand:
        words = provenance.change(sensitive=change.sensitive)
        waiting = proposal_instead(old, Proposal.SUPERSEDE, values, words)
        if waiting is not None:
            return waiting
    inherited: dict[str, Any] = {name: getattr(old, name) for name in INHERITED}
    new = memory_create(user_id=user_id, provenance=provenance, **{**inherited, **values})
    supersede_with(old, new, at=start or new.created_at, change=change, made=True)
    return new


def newest_of(note: Memory) -> Memory:
    """The end of the chain of notes that replaced one another, locked for a change. Raises Conflict where it is gone."""
    seen = {note.pk}
    notes = Memory.objects.for_user(note.user_id).select_for_update()
    while note.status == Status.SUPERSEDED and note.superseded_by_id not in seen:
        later = notes.filter(supersedes=note.pk).first()
        if later is None:
            message = "This note was replaced by one that has been deleted since. Restore one of them first."
            raise Conflict(message, code="replaced")
        seen.add(later.pk)
        note = later
    return note


def supersede_with(
    old: Memory,
    new: Memory,
    *,
    at: datetime,
    change: Change,
    action: Action = Action.SUPERSEDED,
    made: bool = False,
) -> None:
    """Let `old` give way to `new` at a time: status, validity, link and revision.

    `made` says that `new` came into being for this, so that undoing it takes it away again.
    """
    start = old.valid_from or old.created_at
    end = at if at > start else new.created_at
    values: dict[str, Any] = {"superseded_by_id": new.pk}
    if old.valid_to is None or old.valid_to > end:
        values["valid_to"] = end
    if end <= start:
        values["valid_from"] = None  # it was to hold from a time ahead, and never will
    if end <= timezone.now():
        values["status"] = Status.SUPERSEDED
    change_apply(old, values, action, change, more={"by": str(new.pk), "made": made})
    MemoryEdge.objects.unscoped().get_or_create(
        source_id=new.pk,
        target_id=old.pk,
        relation=Relation.SUPERSEDES,
        defaults={"user_id": old.user_id},
    )


@transaction.atomic
def superseded_due() -> int:
    """The sweep: notes whose replacement has begun to hold become superseded; returns how many."""
    now = timezone.now()
    due = Memory.objects.unscoped().filter(
        status=Status.ACTIVE, superseded_by__isnull=False, valid_to__lte=now
    )
    change = Change(actor=Origin.ASSISTANT, reason="what replaces it holds by now")
    notes = list(due.select_for_update())
    for note in notes:
        change_apply(note, {"status": Status.SUPERSEDED}, Action.SUPERSEDED, change)
    return len(notes)


@transaction.atomic
def contradiction_resolve(
    *, user_id: UUID, edge_id: UUID, keep_id: UUID | None, change: Change = BY_USER
) -> None:
    """Settle an open contradiction: the note `keep_id` supersedes the other, or (None) both are true and only related.

    Undoing the supersession opens it again. Raises NotFound for what is no open contradiction of the user, InvalidInput
    for a note that is not one of the two.
    """
    edge = open_contradictions(user_id).select_for_update(of=("self",)).filter(pk=edge_id).first()
    if edge is None:
        raise NotFound("There is no open contradiction with this id.")
    if keep_id is None:
        MemoryEdge.objects.unscoped().get_or_create(
            source_id=edge.source_id,
            target_id=edge.target_id,
            relation=Relation.RELATED,
            defaults={"user_id": user_id},
        )
        edge.delete()
        return
    if keep_id not in {edge.source_id, edge.target_id}:
        raise InvalidInput("keep must be one of the two notes.", field="keep")
    other_id = edge.target_id if keep_id == edge.source_id else edge.source_id
    notes = Memory.objects.owned_by(user_id).select_for_update().in_bulk([keep_id, other_id])
    if len(notes) < 2:  # one was deleted between the two reads
        raise NotFound("There is no open contradiction with this id.")
    supersede_with(notes[other_id], notes[keep_id], at=timezone.now(), change=change)
