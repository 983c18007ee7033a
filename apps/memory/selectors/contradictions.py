"""Notes that contradict each other."""

from collections.abc import Collection
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.memory.models import MemoryEdge, Relation, Status


def open_contradictions(user_id: UUID, *, of: Collection[UUID] | None = None) -> QuerySet[MemoryEdge]:
    """The links between two active notes that say they contradict each other, oldest first; or only those of some."""
    edges = MemoryEdge.objects.for_user(user_id).filter(
        relation=Relation.CONTRADICTS, source__status=Status.ACTIVE, target__status=Status.ACTIVE
    )
    if of is not None:
        edges = edges.filter(Q(source_id__in=of) | Q(target_id__in=of))
    return edges.select_related("source", "target").order_by("created_at", "pk")
