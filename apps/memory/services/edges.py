"""Links between notes."""

from uuid import UUID

from django.db import transaction
from django.db.models import Q

from apps.core.errors import InvalidInput, NotFound
from apps.core.text import clean_text
from apps.memory.models import Memory, MemoryEdge, Relation

MAX_RELATION_CHARS = 64


@transaction.atomic
def edge_create(
    *,
    user_id: UUID,
    source_id: UUID,
    target_id: UUID,
    relation: str = Relation.RELATED,
    weight: float = 1.0,
) -> MemoryEdge:
    """Link two notes of the user; linking them again with the same relation sets the weight.

    `relation` is one of `Relation` or any other text of up to 64 characters, `weight` a number from 0 to 1.
    """
    relation = clean_text(relation, field="relation", max_chars=MAX_RELATION_CHARS)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        raise InvalidInput("weight must be a number from 0 to 1.", field="weight")
    if source_id == target_id:
        raise InvalidInput("A note cannot be linked to itself.", field="target")
    if Memory.objects.owned_by(user_id).filter(pk__in=[source_id, target_id]).count() != 2:
        raise NotFound
    edge, _ = MemoryEdge.objects.unscoped().update_or_create(
        source_id=source_id,
        target_id=target_id,
        relation=relation,
        defaults={"weight": weight},
        create_defaults={"weight": weight, "user_id": user_id},
    )
    return edge


@transaction.atomic
def edge_delete(*, user_id: UUID, source_id: UUID, edge_id: UUID) -> None:
    """Remove a link that starts or ends at the note `source_id`."""
    of_note = Q(source_id=source_id) | Q(target_id=source_id)
    gone, _ = MemoryEdge.objects.for_user(user_id).filter(of_note, pk=edge_id).delete()
    if not gone:
        raise NotFound
