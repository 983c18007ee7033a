"""Notes that hang together."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.memory.models import Memory, MemoryEdge, Relation, Status

from .notes import memories_by_id, memory_get

MAX_DEPTH = 5
NOT_DELETED = tuple(status for status in Status if status != Status.DELETED)

MAX_STEPS = 10_000
"""Links of one level that are followed at most, the strongest first."""


@dataclass(frozen=True, slots=True)
class RelatedNote:
    """A note near another: `depth` links away, reached by a link with this relation and weight from `via_id`."""

    note: Memory
    depth: int
    relation: str
    weight: float
    via_id: UUID


class _Link(NamedTuple):
    """A link from `via_id` to a note."""

    note_id: UUID
    created_at: datetime
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

    Level by level, one query each, until there are `limit`; the links of what is reached are looked at and no
    others. A note of another status, such as a deleted one, is neither shown nor passed through; a cycle ends where it
    began.
    """
    start = memory_get(user_id, memory_id).pk
    seen, level, reached = {start}, {start}, list[tuple[int, _Link]]()
    for away in range(1, min(max(depth, 1), MAX_DEPTH) + 1):
        best: dict[UUID, _Link] = {}
        for link in _links(user_id, level, statuses):
            if link.note_id not in seen:
                best[link.note_id] = min(link, best.get(link.note_id, link), key=_strength)
        reached += [(away, link) for link in sorted(best.values(), key=_place)]
        level = set(best)
        seen |= level
        if not level or len(reached) >= limit:
            break
    nearest = reached[: max(limit, 1)]
    notes = memories_by_id(user_id, [link.note_id for _, link in nearest])
    return [
        RelatedNote(notes[link.note_id], away, link.relation, link.weight, link.via_id)
        for away, link in nearest
        if link.note_id in notes
    ]


def _links(user_id: UUID, level: Collection[UUID], statuses: Collection[str]) -> Iterator[_Link]:
    """The links between these notes and others of these statuses."""
    edges = MemoryEdge.objects.owned_by(user_id).filter(Q(source_id__in=level) | Q(target_id__in=level))
    ends = [f"{end}__{column}" for end in ("source", "target") for column in ("id", "created_at", "status")]
    rows = edges.order_by("-weight").values_list("relation", "weight", *ends)[:MAX_STEPS]
    for relation, weight, *both in rows:
        for (via_id, *_), (note_id, created_at, status) in ((both[:3], both[3:]), (both[3:], both[:3])):
            if via_id in level and status in statuses:
                yield _Link(note_id, created_at, relation, weight, via_id)


def _strength(link: _Link) -> tuple[float, str, UUID]:
    return -link.weight, link.relation, link.via_id


def _place(link: _Link) -> tuple[float, float, UUID]:
    return -link.weight, -link.created_at.timestamp(), link.note_id


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
