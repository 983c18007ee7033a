"""Notes that hang together."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from apps.memory.models import Memory, MemoryEdge, Relation, Status

from .notes import current_cycle, memory_get

MAX_DEPTH = 5
NOT_DELETED = tuple(status for status in Status if status != Status.DELETED)

MAX_STEPS = 10_000
"""Places (a note at a distance) that one walk visits at most, nearest first; beyond that the far ones stay unseen."""

_RELATED = """
WITH RECURSIVE hop (id, depth) AS (
    SELECT id, 0 FROM memory_memory WHERE id = %(start)s
    UNION
    SELECT note.id, hop.depth + 1
    FROM hop
    JOIN memory_memoryedge edge ON edge.source_id = hop.id OR edge.target_id = hop.id
    JOIN memory_memory note
      ON note.id = CASE WHEN edge.source_id = hop.id THEN edge.target_id ELSE edge.source_id END
    WHERE hop.depth < %(depth)s AND note.user_id = %(user)s AND note.status IN ({statuses})
      AND note.id <> %(start)s
    LIMIT %(steps)s
),
reached AS MATERIALIZED (SELECT id, MIN(depth) AS depth FROM hop GROUP BY id),
way AS (
    SELECT near.id, near.depth, edge.relation, edge.weight, came.id AS via_id,
           ROW_NUMBER() OVER (PARTITION BY near.id ORDER BY edge.weight DESC, edge.relation, came.id) AS place
    FROM (SELECT id, depth FROM reached WHERE depth > 0 AND depth <= COALESCE(
        (SELECT depth FROM reached WHERE depth > 0 ORDER BY depth LIMIT 1 OFFSET %(limit)s - 1), %(depth)s
    )) near
    JOIN memory_memoryedge edge ON edge.source_id = near.id OR edge.target_id = near.id
    JOIN reached came
      ON came.id = CASE WHEN edge.source_id = near.id THEN edge.target_id ELSE edge.source_id END
     AND came.depth = near.depth - 1
)
SELECT note.*, way.depth, way.relation, way.weight, way.via_id,
       CASE WHEN note.priority > note.decay_rate * (%(cycle)s - note.priority_cycle)
            THEN note.priority - note.decay_rate * (%(cycle)s - note.priority_cycle) ELSE 0.0 END AS priority_now
FROM way JOIN memory_memory note ON note.id = way.id
WHERE way.place = 1
ORDER BY way.depth, way.weight DESC, note.created_at DESC, note.id
LIMIT %(limit)s
"""


@dataclass(frozen=True, slots=True)
class RelatedNote:
    """A note near another: `depth` links away, reached by a link with this relation and weight from `via_id`."""

    note: Memory
    depth: int
    relation: str
    weight: float
    via_id: UUID


def related_notes(
    user_id: UUID,
    memory_id: UUID,
    *,
    depth: int = 2,
    limit: int = 200,
    statuses: Collection[str] = NOT_DELETED,
) -> list[RelatedNote]:
    """The notes within `depth` (1 to MAX_DEPTH) links of a note, in either direction, nearest first.

    One recursive query finds them all; it touches the links of what it reaches and no others. A note of another
    status, such as a deleted one, is neither shown nor passed through; a cycle ends where it began.
    """
    start = memory_get(user_id, memory_id)
    key = Memory._meta.pk.get_db_prep_value
    parameters = {
        "start": key(start.pk, connection),
        "user": key(user_id, connection),
        "depth": min(max(depth, 1), MAX_DEPTH),
        "cycle": current_cycle(user_id),
        "limit": max(limit, 1),
        "steps": MAX_STEPS,
    } | {f"status{number}": str(status) for number, status in enumerate(statuses)}
    sql = _RELATED.format(
        statuses=", ".join(f"%(status{number})s" for number in range(len(statuses))),
    )
    return [_related(row) for row in Memory.objects.unscoped().raw(sql, parameters)]


def _related(row: Memory) -> RelatedNote:
    extra = vars(row)
    via = extra["via_id"]
    via_id = via if isinstance(via, UUID) else UUID(via)
    return RelatedNote(row, extra["depth"], extra["relation"], extra["weight"], via_id)


def links_of(user_id: UUID, memory_id: UUID) -> QuerySet[MemoryEdge]:
    """The links that start or end at a note, oldest first, to notes that are not deleted."""
    memory_get(user_id, memory_id)
    edges = MemoryEdge.objects.owned_by(user_id).filter(Q(source_id=memory_id) | Q(target_id=memory_id))
    seen = edges.exclude(source__status="deleted").exclude(target__status="deleted")
    return seen.select_related("source", "target").order_by("created_at", "pk")


def open_contradictions(user_id: UUID, *, of: Collection[UUID] | None = None) -> QuerySet[MemoryEdge]:
    """The links between two active notes that say they contradict each other, oldest first; or only those of some."""
    edges = MemoryEdge.objects.for_user(user_id).filter(
        relation=Relation.CONTRADICTS, source__status=Status.ACTIVE, target__status=Status.ACTIVE
    )
    if of is not None:
        edges = edges.filter(Q(source_id__in=of) | Q(target_id__in=of))
    return edges.select_related("source", "target").order_by("created_at", "pk")
