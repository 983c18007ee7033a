"""Which notes the picture shows, and the links between them: those around one note, or the best linked."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.memory.models import Memory, MemoryEdge, Status
from apps.memory.selectors import memories_by_id, memory_get, related_notes

MAX_NOTES = 48
"""A picture of more cannot be read; what is further away is shown around another note."""
MAX_LINKS = 3_000
"""The newest links of a user among which the best linked notes are found."""
MAX_DRAWN = 200
DEPTH = 2
SHOWN = (Status.ACTIVE, Status.SUPERSEDED)


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two notes that are both shown, by their places in `Graph.notes`."""

    source: int
    target: int
    relation: str


@dataclass(frozen=True, slots=True)
class Graph:
    """`notes` in their order of weight, the chosen one first; `linked` counts the notes that have links at all,
    as far as they were looked at."""

    notes: tuple[Memory, ...]
    links: tuple[Link, ...]
    linked: int

    def degrees(self) -> list[int]:
        """How many of the links each note has."""
        counts = [0] * len(self.notes)
        for link in self.links:
            counts[link.source] += 1
            counts[link.target] += 1
        return counts


def graph_of(user_id: UUID) -> Graph:
    """The best linked notes, each followed by what it is linked to."""
    pairs = list(_links(user_id).order_by("-pk").values_list("source_id", "target_id")[:MAX_LINKS])
    near: dict[UUID, set[UUID]] = defaultdict(set)
    for source, target in pairs:
        near[source].add(target)
        near[target].add(source)
    chosen = _spread(near)
    notes = memories_by_id(user_id, chosen)
    return _drawn(user_id, [notes[key] for key in chosen if key in notes], len(near))


def graph_around(user_id: UUID, memory_id: UUID) -> Graph:
    """A note and those at most DEPTH links away, nearest first. Raises NotFound."""
    found = related_notes(user_id, memory_id, depth=DEPTH, limit=MAX_NOTES - 1, statuses=SHOWN)
    notes = [memory_get(user_id, memory_id), *(row.note for row in found)]
    return _drawn(user_id, notes, len(notes))


def _links(user_id: UUID) -> QuerySet[MemoryEdge]:
    return MemoryEdge.objects.for_user(user_id).filter(source__status__in=SHOWN, target__status__in=SHOWN)


def _spread(near: dict[UUID, set[UUID]]) -> list[UUID]:
    """From the best linked note outwards, then from the best of the rest, until there are enough."""
    weight = {key: (-len(others), key) for key, others in near.items()}
    chosen: dict[UUID, None] = {}
    for start in sorted(near, key=weight.__getitem__):
        if len(chosen) >= MAX_NOTES:
            break
        if start in chosen or (chosen and len(chosen) + len(near[start]) >= MAX_NOTES):
            continue
        _reach(start, near, weight, chosen)
    return list(chosen)


def _reach(
    start: UUID, near: dict[UUID, set[UUID]], weight: dict[UUID, tuple[int, UUID]], chosen: dict[UUID, None]
) -> None:
    waiting = [start]
    while waiting and len(chosen) < MAX_NOTES:
        key = waiting.pop(0)
        if key not in chosen:
            chosen[key] = None
            waiting += sorted(near[key] - chosen.keys(), key=weight.__getitem__)


def _drawn(user_id: UUID, notes: Sequence[Memory], linked: int) -> Graph:
    places = {note.pk: place for place, note in enumerate(notes)}
    between = Q(source_id__in=places.keys(), target_id__in=places.keys())
    rows = MemoryEdge.objects.owned_by(user_id).filter(between).order_by("-weight", "pk")
    drawn = rows.values_list("source_id", "target_id", "relation")[:MAX_DRAWN]
    return Graph(tuple(notes), tuple(_placed(drawn, places)), linked)


def _placed(rows: Iterable[tuple[UUID, UUID, str]], places: dict[UUID, int]) -> Iterable[Link]:
    for source, target, relation in rows:
        yield Link(places[source], places[target], relation)
