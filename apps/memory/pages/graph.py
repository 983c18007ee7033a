"""The graph page: notes and their links; linking two of them and taking a link away."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.errors import IzzyError, NotFound
from apps.core.ids import parse_id
from apps.memory import selectors
from apps.memory.addressing import addressed
from apps.memory.models import Memory, MemoryEdge, Relation, Status
from apps.memory.notes.joining import edge_create, edge_delete
from apps.memory.recall.searching import notes_search
from apps.memory.selectors import NoteFilter, memories_by_id, memory_get, related_notes
from apps.memory.similarity import NOTES
from apps.search.selectors import similar

from .done import done_last, done_next, named, own_note
from .drawing import LETTER, Label, Labels, Points, fitted, positions
from .notes import LEAST_SCORE, rows_of


@dataclass(frozen=True, slots=True)
class Words:
    """`forth` from the source to the target, `back` the other way; `style` is how its line is drawn."""

    forth: str
    back: str
    style: str = "plain"

    @classmethod
    def of(cls, relation: str, *ends: Memory) -> "Words":
        """Those of a relation between two notes; another text than Izzy's own stands for itself. What contradicted a note that
        does not hold any more is settled."""
        if relation == Relation.CONTRADICTS and any(note.status != Status.ACTIVE for note in ends):
            return SETTLED
        return KNOWN.get(relation) or cls(relation.replace("_", " "), relation.replace("_", " "))


KNOWN: dict[str, Words] = {
    Relation.RELATED: Words("goes with", "goes with"),
    Relation.SUPERSEDES: Words("replaces", "was replaced by", "replaced"),
    Relation.CONTRADICTS: Words("contradicts", "contradicts", "against"),
    Relation.ELABORATES: Words("adds to", "has more in"),
}
SETTLED = Words("contradicted", "contradicted", "replaced")
CHOICES = [(str(relation), KNOWN[relation].forth) for relation in (Relation.RELATED, Relation.ELABORATES)]
"""Links a reader may make; the others come from replacing and from contradictions."""


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
    return _graph_of(user_id, [notes[key] for key in chosen if key in notes], len(near))


def graph_around(user_id: UUID, memory_id: UUID) -> Graph:
    """A note and those at most DEPTH links away, nearest first. Raises NotFound."""
    found = related_notes(user_id, memory_id, depth=DEPTH, limit=MAX_NOTES - 1, statuses=SHOWN)
    notes = [memory_get(user_id, memory_id), *(row.note for row in found)]
    return _graph_of(user_id, notes, len(notes))


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


def _graph_of(user_id: UUID, notes: Sequence[Memory], linked: int) -> Graph:
    places = {note.pk: place for place, note in enumerate(notes)}
    between = Q(source_id__in=places.keys(), target_id__in=places.keys())
    rows = MemoryEdge.objects.owned_by(user_id).filter(between).order_by("-weight", "pk")
    drawn = rows.values_list("source_id", "target_id", "relation")[:MAX_DRAWN]
    return Graph(tuple(notes), tuple(_placed(drawn, places)), linked)


def _placed(rows: Iterable[tuple[UUID, UUID, str]], places: dict[UUID, int]) -> Iterable[Link]:
    for source, target, relation in rows:
        yield Link(places[source], places[target], relation)


LABEL_CHARS = 28
BOLD = 1.15
"""How much wider the words of the chosen note are."""


@dataclass(frozen=True, slots=True)
class Canvas:
    """A size the picture is drawn in, in CSS pixels at its natural size; labels need `side` at left and right."""

    name: str
    width: int
    height: int
    side: int
    least: int
    top: int = 28

    def for_notes(self, count: int) -> "Canvas":
        """Lower where there is little to show."""
        return replace(self, height=min(self.height, self.least + 16 * count))


WIDE, TALL = Canvas("wide", 912, 560, 90, 200), Canvas("tall", 358, 520, 48, 340)


@dataclass(frozen=True, slots=True)
class Dot:
    """A note: its circle, and the `words` beside it that stand for its `text`."""

    note: Memory
    place: int
    x: float
    y: float
    radius: float
    words: str
    label: Label
    chosen: bool
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    x1: float
    y1: float
    x2: float
    y2: float
    style: str
    words: str
    ends: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Picture:
    canvas: Canvas
    dots: tuple[Dot, ...]
    lines: tuple[Line, ...]


def pictures(graph: Graph, *, chosen: bool) -> list[Picture]:
    """The same graph for a wide and for a narrow page; `chosen`: its first note is the one that was asked for."""
    count = len(graph.notes)
    if not count:
        return []
    places = positions(count, [(link.source, link.target) for link in graph.links], pinned=chosen)
    return [_picture(graph, canvas.for_notes(count), places, chosen) for canvas in (WIDE, TALL)]


def short(text: str, chars: int = LABEL_CHARS) -> str:
    """The beginning of a text, cut at a word where one ends near."""
    line = " ".join(text.split())
    if len(line) <= chars:
        return line
    cut = line[: chars - 1]
    at = cut.rfind(" ")
    return (cut[:at] if at > chars // 2 else cut).rstrip(" ,;:.") + "…"


def _picture(graph: Graph, canvas: Canvas, places: Points, chosen: bool) -> Picture:
    room = (canvas.width - 2 * canvas.side, canvas.height - 2 * canvas.top)
    points = [
        (round(canvas.side + x * room[0], 1), round(canvas.top + y * room[1], 1))
        for x, y in fitted(places, canvas.width / canvas.height).tolist()
    ]
    return Picture(canvas, tuple(_dots(graph, points, canvas, chosen)), tuple(_lines(graph, points)))


def _lines(graph: Graph, points: list[tuple[float, float]]) -> list[Line]:
    lines = []
    for link in graph.links:
        words = Words.of(link.relation, graph.notes[link.source], graph.notes[link.target])
        ends = points[link.source], points[link.target]
        lines.append(Line(*ends[0], *ends[1], words.style, words.forth, (link.source, link.target)))
    return lines


def _dots(graph: Graph, points: list[tuple[float, float]], canvas: Canvas, chosen: bool) -> list[Dot]:
    degrees = graph.degrees()
    radii = [min(5.0 + 1.1 * degree, 13.0) for degree in degrees]
    near: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for link in graph.links:
        near[link.source].append(points[link.target])
        near[link.target].append(points[link.source])
    labels = Labels(list(zip(points, radii, strict=True)), canvas.width, canvas.height)
    dots = []
    for place in sorted(
        range(len(points)), key=lambda place: (place > 0 or not chosen, -degrees[place], place)
    ):
        text = addressed(graph.notes[place].content)
        in_middle = chosen and place == 0
        words = short(text)
        width = len(words) * LETTER * (BOLD if in_middle else 1.0)
        label = labels.beside(place, width, near[place])
        x, y = points[place]
        dots.append(Dot(graph.notes[place], place, x, y, radii[place], words, label, in_middle, text))
    return sorted(dots, key=lambda dot: dot.place)


FOUND_AT_MOST = 8
LIKE_IT_AT_MOST = 4
LEAST_LIKENESS = 0.5
"""Similarity of notes (`apps.search.selectors.similar`) from which on they are about the same."""
MAX_LISTED = 100


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A link as it is read from one of its notes."""

    words: str
    note: Memory
    edge_id: UUID | None = None


@require_GET
@own_note
def graph(request: SignedInRequest) -> HttpResponse:
    """`?note=` shows what is around a note, else the best linked; `?q=` finds notes to look around or to link to that one."""
    asked = request.GET.get("note", "")
    query = request.GET.get("q", "").strip()[:1000]
    chosen = selectors.memory_get(request.user.pk, parse_id(asked)) if asked else None
    context = {"nav": "memory", "query": query, **_drawn(request.user.pk, chosen), **done_last(request)}
    if query:
        try:
            hits = notes_search(
                request.user.pk, query, wanted=NoteFilter(), top_k=FOUND_AT_MOST, threshold=LEAST_SCORE
            )
            linked = {near.note.pk for near in context.get("links", [])}
            context["found"] = [
                (note, chosen is not None and note.pk not in {chosen.pk, *linked}) for _, note in hits
            ]
        except IzzyError as error:
            context["problem"] = error.message
    return render(request, "memory/graph/page.html", context)


@require_POST
@own_note
def link(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Link a note to another of the user's: `target`, `relation`."""
    key = parse_id(memory_id)
    relation, target = request.POST.get("relation", ""), parse_id(request.POST.get("target", ""))
    try:
        edge_create(
            user_id=request.user.pk,
            source_id=key,
            target_id=target,
            relation=relation if relation in dict(CHOICES) else CHOICES[0][0],
        )
    except NotFound:
        raise
    except IzzyError as error:
        done_next(request, error.message, failed=True)
    else:
        done_next(request, f"Linked to {named(request.user.pk, [target])}.")
    return redirect(f"{reverse('memory:graph')}?note={key}")


@require_POST
@own_note
def unlink(request: SignedInRequest, memory_id: str, edge_id: str) -> HttpResponse:
    """Take a link of a note away."""
    key = parse_id(memory_id)
    edge_delete(user_id=request.user.pk, source_id=key, edge_id=parse_id(edge_id))
    done_next(request, "The link is taken away.")
    return redirect(f"{reverse('memory:graph')}?note={key}")


def _drawn(user_id: UUID, chosen: Memory | None) -> dict[str, Any]:
    found = graph_around(user_id, chosen.pk) if chosen else graph_of(user_id)
    context: dict[str, Any] = {
        "pictures": pictures(found, chosen=chosen is not None),
        "graph": found,
        "listed": _listed(found),
        "most": MAX_NOTES,
        "any": bool(found.notes) or Memory.objects.for_user(user_id).filter(status=Status.ACTIVE).exists(),
    }
    return context | (_around(user_id, chosen) if chosen else {})


def _around(user_id: UUID, chosen: Memory) -> dict[str, Any]:
    """Context of the chosen note: its card, its links, and notes like it that it is not linked to."""
    links = [_neighbour(edge, chosen.pk) for edge in selectors.links_of(user_id, chosen.pk)[:MAX_LISTED]]
    (row,) = rows_of(user_id, [(chosen, None)])
    linked = {chosen.pk, *(near.note.pk for near in links)}
    return {
        "chosen": chosen,
        "row": row,
        "links": links,
        "like_it": _like(user_id, chosen, linked),
        "relations": CHOICES,
    }


def _neighbour(edge: MemoryEdge, of: UUID) -> Neighbour:
    words = Words.of(edge.relation, edge.source, edge.target)
    outward = edge.source_id == of
    return Neighbour(words.forth if outward else words.back, edge.target if outward else edge.source, edge.pk)


def _like(user_id: UUID, chosen: Memory, linked: set[UUID]) -> list[Memory]:
    """Notes about the same that have no link to it yet."""
    if chosen.status != Status.ACTIVE:
        return []
    near = similar(user_id, chosen.content, top_k=LIKE_IT_AT_MOST + len(linked), scope=NOTES)
    ids = [key for key, likeness in near if likeness >= LEAST_LIKENESS and key not in linked]
    notes = selectors.memories_by_id(user_id, ids)
    like = [notes[key] for key in ids if key in notes and notes[key].status == Status.ACTIVE]
    return like[:LIKE_IT_AT_MOST]


def _listed(found: Graph) -> list[tuple[Memory, str, list[Neighbour]]]:
    """The picture in words: each note with what it is linked to."""
    near: dict[int, list[Neighbour]] = defaultdict(list)
    for link in found.links:
        words = Words.of(link.relation, found.notes[link.source], found.notes[link.target])
        near[link.source].append(Neighbour(words.forth, found.notes[link.target]))
        near[link.target].append(Neighbour(words.back, found.notes[link.source]))
    return [(note, addressed(note.content), near[place]) for place, note in enumerate(found.notes)]
