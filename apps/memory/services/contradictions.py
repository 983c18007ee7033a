"""Two notes that cannot both be true, until the user says which is."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.core.errors import InvalidInput, NotFound
from apps.memory.models import Memory, MemoryEdge, Relation
from apps.memory.selectors.contradictions import open_contradictions

from .provenance import BY_USER, Change
from .superseding import supersede_with


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
