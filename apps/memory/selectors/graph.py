"""Notes that hang together."""

from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from apps.memory.models import Memory, MemoryEdge

from .notes import current_cycle, memory_get

MAX_DEPTH = 5

_RELATED = """
WITH RECURSIVE hop (id, depth, relation, weight, via_id) AS (
    SELECT id, 0, '', 1.0, id FROM memory_memory WHERE id = %(start)s
    UNION
    SELECT note.id, hop.depth + 1, edge.relation, edge.weight, hop.id
    FROM hop
    JOIN memory_memoryedge edge ON edge.source_id = hop.id OR edge.target_id = hop.id
    JOIN memory_memory note
      ON note.id = CASE WHEN edge.source_id = hop.id THEN edge.target_id ELSE edge.source_id END
    WHERE hop.depth < %(depth)s AND note.user_id = %(user)s AND note.status <> 'deleted'
      AND note.id <> %(start)s
),
nearest AS (
    SELECT id, depth, relation, weight, via_id,
           ROW_NUMBER() OVER (PARTITION BY id ORDER BY depth, weight DESC, relation, via_id) AS place
    FROM hop WHERE depth > 0
)
SELECT note.*, nearest.depth, nearest.relation, nearest.weight, nearest.via_id,
       CASE WHEN note.priority > note.decay_rate * (%(cycle)s - note.priority_cycle)
            THEN note.priority - note.decay_rate * (%(cycle)s - note.priority_cycle) ELSE 0.0 END AS priority_now
FROM nearest JOIN memory_memory note ON note.id = nearest.id
WHERE nearest.place = 1
ORDER BY nearest.depth, nearest.weight DESC, note.created_at DESC, note.id
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


def related_notes(user_id: UUID, memory_id: UUID, *, depth: int = 2, limit: int = 200) -> list[RelatedNote]:
    """The notes within `depth` (1 to MAX_DEPTH) links of a note, in either direction, nearest first.

    One recursive query finds them all. A deleted note is not passed through, a cycle ends where it began.
    """
    start = memory_get(user_id, memory_id)
    key = Memory._meta.pk.get_db_prep_value
    parameters = {
        "start": key(start.pk, connection),
        "user": key(user_id, connection),
        "depth": min(max(depth, 1), MAX_DEPTH),
        "cycle": current_cycle(user_id),
        "limit": limit,
    }
    rows = Memory.objects.unscoped().raw(_RELATED, parameters)
    return [_related(row) for row in rows]


def _related(row: Memory) -> RelatedNote:
    extra = vars(row)
    via = extra["via_id"]
    via_id = via if isinstance(via, UUID) else UUID(via)
    return RelatedNote(row, extra["depth"], extra["relation"], extra["weight"], via_id)


def links_of(user_id: UUID, memory_id: UUID) -> QuerySet[MemoryEdge]:
    """The links that start or end at a note, oldest first, to notes that are not deleted."""
    memory_get(user_id, memory_id)
    edges = MemoryEdge.objects.for_user(user_id).filter(Q(source_id=memory_id) | Q(target_id=memory_id))
    seen = edges.exclude(source__status="deleted").exclude(target__status="deleted")
    return seen.select_related("source", "target").order_by("created_at", "pk")
