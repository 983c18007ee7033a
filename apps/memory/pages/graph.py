"""The graph page: notes and their links; linking two of them and taking a link away."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.addressing import addressed
from apps.core.errors import REFUSALS, IzzyError
from apps.core.ids import parse_id
from apps.memory.models import Memory, MemoryEdge, Relation, Status
from apps.memory.notes.joining import edge_create, edge_delete
from apps.memory.notes.selectors import NoteFilter, links_at, memories_by_id, memory_get, related_notes
from apps.memory.recall.searching import notes_search
from apps.memory.similarity import NOTES
from apps.search.selectors import similar

from .done import done_last, done_next, named, own_note, page_url
from .drawing import LETTER, Label, Labels, Point, fitted, positions
from .notes import LEAST_SCORE, rows_of


@dataclass(frozen=True, slots=True)
class Words:
    """The names of a link: `forth` from its source to its target, `back` the other way; `style` is how its line is drawn."""

    forth: str
    back: str
    style: str = "plain"

    @classmethod
    def of(cls, relation: str, *ends: Memory) -> "Words":
        """Those of a relation between two notes; another text than Izzy's own stands for itself. What contradicted a note that
        does not hold any more is settled."""
        if relation == Relation.CONTRADICTS and any(note.status != Status.ACTIVE for note in ends):
            return cls("contradicted", "contradicted", "replaced")
        return KNOWN.get(relation) or cls(relation.replace("_", " "), relation.replace("_", " "))


KNOWN: dict[str, Words] = {
    Relation.RELATED: Words("goes with", "goes with"),
    Relation.SUPERSEDES: Words("replaces", "was replaced by", "replaced"),
    Relation.CONTRADICTS: Words("contradicts", "contradicts", "against"),
    Relation.ELABORATES: Words("adds to", "has more in"),
}
CHOICES = [
    (str(relation), KNOWN[relation].forth) for relation in (Relation.RELATED, Relation.ELABORATES)
]
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
    words: Words


@dataclass(frozen=True, slots=True)
class Graph:
    """Holds what the picture shows: the notes around one, or the best linked, and the links between them."""

    notes: Sequence[Memory]  # in their order of weight, the chosen one first
    links: Sequence[Link]
    linked: int  # how many notes have links at all, as far as they were looked at


def graph_of(user_id: UUID) -> Graph:
    """The best linked notes, each followed by what it is linked to."""
    edges = MemoryEdge.objects.for_user(user_id).filter(
        source__status__in=SHOWN, target__status__in=SHOWN
    )
    near: dict[UUID, set[UUID]] = defaultdict(set)
    for source, target in edges.order_by("-pk").values_list("source_id", "target_id")[:MAX_LINKS]:
        near[source].add(target)
        near[target].add(source)
    chosen = _spread(near)
    notes = memories_by_id(user_id, chosen)
    return _between(user_id, [notes[key] for key in chosen if key in notes], len(near))


def graph_around(user_id: UUID, memory_id: UUID) -> Graph:
    """A note and those at most DEPTH links away, nearest first. Raises NotFound."""
    found = related_notes(user_id, memory_id, depth=DEPTH, limit=MAX_NOTES - 1, statuses=SHOWN)
    notes = [memory_get(user_id, memory_id), *(row.note for row in found)]
    return _between(user_id, notes, len(notes))


def _spread(near: dict[UUID, set[UUID]]) -> list[UUID]:
    """From the best linked note outwards, then from the best of the rest, until there are enough."""
    weight = {key: (-len(others), key) for key, others in near.items()}
    chosen: dict[UUID, None] = {}
    for start in sorted(near, key=weight.__getitem__):
        if start in chosen or (chosen and len(chosen) + len(near[start]) >= MAX_NOTES):
            continue
        waiting = [start]
        while waiting and len(chosen) < MAX_NOTES:
            key = waiting.pop(0)
            if key not in chosen:
                chosen[key] = None
                waiting += sorted(near[key] - chosen.keys(), key=weight.__getitem__)
    return list(chosen)


def _between(user_id: UUID, notes: Sequence[Memory], linked: int) -> Graph:
    """The graph of these notes with the links between them."""
    places = {note.pk: place for place, note in enumerate(notes)}
    between = Q(source_id__in=places.keys(), target_id__in=places.keys())
    rows = MemoryEdge.objects.owned_by(user_id).filter(between).order_by("-weight", "pk")
    links = []
    for source_id, target_id, relation in rows.values_list("source_id", "target_id", "relation")[
        :MAX_DRAWN
    ]:
        source, target = places[source_id], places[target_id]
        links.append(Link(source, target, Words.of(relation, notes[source], notes[target])))
    return Graph(notes, links, linked)


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
    least: int  # the height with nothing in it: lower where there is little to show
    top: int = 28


CANVASES = (Canvas("wide", 912, 560, 90, 200), Canvas("tall", 358, 520, 48, 340))


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
    dots: Sequence[Dot]
    lines: Sequence[Line]


def pictures(graph: Graph, *, chosen: bool) -> list[Picture]:
    """The same graph for a wide and for a narrow page; `chosen`: its first note is the one that was asked for."""
    count = len(graph.notes)
    if not count:
        return []
    places = positions(count, [(link.source, link.target) for link in graph.links], pinned=chosen)
    drawn = []
    for size in CANVASES:
        canvas = replace(size, height=min(size.height, size.least + 16 * count))
        room = (canvas.width - 2 * canvas.side, canvas.height - 2 * canvas.top)
        points = [
            (round(canvas.side + x * room[0], 1), round(canvas.top + y * room[1], 1))
            for x, y in fitted(places, canvas.width / canvas.height).tolist()
        ]
        lines = [
            Line(
                *points[link.source],
                *points[link.target],
                link.words.style,
                link.words.forth,
                (link.source, link.target),
            )
            for link in graph.links
        ]
        drawn.append(Picture(canvas, _dots(graph, points, canvas, chosen), lines))
    return drawn


def _dots(graph: Graph, points: list[Point], canvas: Canvas, chosen: bool) -> list[Dot]:
    near: list[list[Point]] = [[] for _ in points]
    for link in graph.links:
        near[link.source].append(points[link.target])
        near[link.target].append(points[link.source])
    radii = [min(5.0 + 1.1 * len(ends), 13.0) for ends in near]
    labels = Labels(list(zip(points, radii, strict=True)), canvas.width, canvas.height)
    dots = []
    # The best linked notes have the choice where their labels go.
    order = sorted(
        range(len(points)), key=lambda place: (place > 0 or not chosen, -len(near[place]), place)
    )
    for place in order:
        text = addressed(graph.notes[place].content)
        in_middle = chosen and place == 0
        words = label_words(text)
        label = labels.beside(place, len(words) * LETTER * (BOLD if in_middle else 1.0), near[place])
        x, y = points[place]
        dots.append(Dot(graph.notes[place], place, x, y, radii[place], words, label, in_middle, text))
    return sorted(dots, key=lambda dot: dot.place)


def label_words(text: str, chars: int = LABEL_CHARS) -> str:
    """The beginning of a text, cut at a word where one ends near."""
    line = " ".join(text.split())
    if len(line) <= chars:
        return line
    cut = line[: chars - 1]
    at = cut.rfind(" ")
    return (cut[:at] if at > chars // 2 else cut).rstrip(" ,;:.") + "…"


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
    user_id, asked = request.user.pk, request.GET.get("note", "")
    query = request.GET.get("q", "").strip()[:1000]
    chosen = memory_get(user_id, parse_id(asked)) if asked else None
    shown = graph_around(user_id, chosen.pk) if chosen else graph_of(user_id)
    context = {
        "nav": "memory",
        "query": query,
        "pictures": pictures(shown, chosen=chosen is not None),
        "graph": shown,
        "listed": _listed(shown),
        "most": MAX_NOTES,
        "any": bool(shown.notes)
        or Memory.objects.for_user(user_id).filter(status=Status.ACTIVE).exists(),
        **({"row": rows_of(user_id, [(chosen, None)])[0]} if chosen else {}),
        **(around(user_id, chosen) if chosen else {}),
        **done_last(request),
    }
    if query:
        try:
            hits = notes_search(
                user_id, query, wanted=NoteFilter(), top_k=FOUND_AT_MOST, threshold=LEAST_SCORE
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
def link(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Link a note to another of the user's: `target`, `relation`."""
    relation, target = request.POST.get("relation", ""), parse_id(request.POST.get("target", ""))
    known = relation if relation in dict(CHOICES) else CHOICES[0][0]
    try:
        edge_create(user_id=request.user.pk, source_id=memory_id, target_id=target, relation=known)
        done_next(request, f"Linked to {named(request.user.pk, [target])}.")
    except REFUSALS as error:
        done_next(request, error.message, failed=True)
    return _back(request, memory_id)


@require_POST
@own_note
def unlink(request: SignedInRequest, memory_id: UUID, edge_id: UUID) -> HttpResponse:
    """Take a link of a note away."""
    edge_delete(user_id=request.user.pk, source_id=memory_id, edge_id=edge_id)
    done_next(request, "The link is taken away.")
    return _back(request, memory_id)


def _back(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """To the page that the form stood on, which is the graph unless it says otherwise."""
    around_it = f"{reverse('memory:graph')}?note={memory_id}"
    return redirect(page_url(request) if "page" in request.POST else around_it)


def around(user_id: UUID, chosen: Memory) -> dict[str, Any]:
    """Context of the chosen note: its links, and notes about the same that it is not linked to."""
    links = []
    for edge in links_at(chosen)[:MAX_LISTED]:
        words = Words.of(edge.relation, edge.source, edge.target)
        outward = edge.source_id == chosen.pk
        other = edge.target if outward else edge.source
        links.append(Neighbour(words.forth if outward else words.back, other, edge.pk))
    like_it: list[Memory] = []
    if chosen.status == Status.ACTIVE:
        linked = {chosen.pk, *(near.note.pk for near in links)}
        near = similar(user_id, chosen.content, top_k=LIKE_IT_AT_MOST + len(linked), scope=NOTES)
        ids = [key for key, likeness in near if likeness >= LEAST_LIKENESS and key not in linked]
        notes = Memory.objects.owned_by(user_id).in_bulk(ids)
        like_it = [notes[key] for key in ids if key in notes and notes[key].status == Status.ACTIVE]
    return {
        "chosen": chosen,
        "links": links,
        "like_it": like_it[:LIKE_IT_AT_MOST],
        "relations": CHOICES,
    }


def _listed(found: Graph) -> list[tuple[Memory, str, list[Neighbour]]]:
    """The picture in words: each note with what it is linked to."""
    near: dict[int, list[Neighbour]] = defaultdict(list)
    for link in found.links:
        near[link.source].append(Neighbour(link.words.forth, found.notes[link.target]))
        near[link.target].append(Neighbour(link.words.back, found.notes[link.source]))
    return [(note, addressed(note.content), near[place]) for place, note in enumerate(found.notes)]
