"""The graph page: notes and their links; linking two of them and taking a link away."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import numpy as np
from django import forms
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.addressing import addressed
from apps.core.errors import REFUSALS, IzzyError
from apps.core.ids import parse_id
from apps.core.text import truncated
from apps.memory.models import Kind, Memory, MemoryEdge, Relation, Status
from apps.memory.notes.joining import edge_create, edge_delete
from apps.memory.notes.linked import MAX_NOTES, SHOWN, STEP, best_linked
from apps.memory.notes.selectors import NoteFilter, links_at, memories_by_id, memory_get, related_notes
from apps.memory.recall.searching import notes_search
from apps.memory.similarity import NOTES
from apps.memory.summary.keeping import linked_of
from apps.search.selectors import similar

from .done import done_last, done_next, named, own_note, page_url
from .drawing import LETTER, Label, Labels, Point, fitted, positions, spaced
from .notes import LEAST_SCORE, rows_of
from .paging import number_asked


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

MAX_DRAWN = 400
DEPTH = 2


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


def graph_of(user_id: UUID, most: int, *, kind: str = "", tag: str = "") -> Graph:
    """The best linked notes, each followed by what it is linked to; of a kind, with a tag."""
    narrowed = kind or tag
    chosen, linked = (
        best_linked(user_id, most=most, kind=kind, tag=tag) if narrowed else linked_of(user_id, most)
    )
    notes = memories_by_id(user_id, chosen)
    shown = (notes[key] for key in chosen if key in notes)
    return _between(user_id, [note for note in shown if note.status in SHOWN], linked)


def graph_around(user_id: UUID, memory_id: UUID, most: int) -> Graph:
    """A note and those at most DEPTH links away, nearest first. Raises NotFound."""
    found = related_notes(user_id, memory_id, depth=DEPTH, limit=most, statuses=SHOWN)
    notes = [memory_get(user_id, memory_id), *(row.note for row in found)]
    return _between(user_id, notes[:most], len(notes))


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
SMALL = 0.9
"""How much narrower the words of a link are."""
WHOLE_CHARS = 400
LEAST_APART = 26.0
"""Between two notes, so that a finger meets one of them."""
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

    @property
    def href(self) -> str:
        """The note's page."""
        return reverse("memory:note", args=[self.note.pk])

    @property
    def whole(self) -> str:
        """As much of the text as is read out, and shown where the note is pointed at."""
        return truncated(" ".join(self.text.split()), WHOLE_CHARS)


@dataclass(frozen=True, slots=True)
class Line:
    """A link; its `words` stand at `middle`, `named`: whether they do so unasked."""

    x1: float
    y1: float
    x2: float
    y2: float
    style: str
    words: str
    ends: tuple[int, int]
    named: bool

    @property
    def middle(self) -> Point:
        """Where the words of the link stand."""
        return round((self.x1 + self.x2) / 2, 1), round((self.y1 + self.y2) / 2 + 4, 1)


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
    grown = max(1.0, (count / STEP) ** 0.5)  # so that more notes stand no closer
    for size in CANVASES:
        height = min(size.height, size.least + 16 * count)
        canvas = replace(size, width=round(size.width * grown), height=round(height * grown))
        room = (canvas.width - 2 * canvas.side, canvas.height - 2 * canvas.top)
        corner = np.array([canvas.side, canvas.top])
        fitting = corner + fitted(places, canvas.width / canvas.height) * np.array(room)
        apart = spaced(fitting, LEAST_APART, tuple(corner), tuple(corner + room))
        points = [(round(x, 1), round(y, 1)) for x, y in apart.tolist()]
        dots, labels = _dots(graph, points, canvas, chosen)
        lines = _lines(graph, points, labels)
        drawn.append(Picture(canvas, dots, lines))
    return drawn


def _lines(graph: Graph, points: list[Point], labels: Labels) -> list[Line]:
    """The links; those that say more than that two notes go together have their words in the picture where there is room."""
    lines = []
    for link in graph.links:
        (x1, y1), (x2, y2) = points[link.source], points[link.target]
        words, middle = link.words.forth, ((x1 + x2) / 2, (y1 + y2) / 2 + 4)
        named = link.words is not KNOWN[Relation.RELATED] and labels.take(
            middle, len(words) * LETTER * SMALL
        )
        lines.append(Line(x1, y1, x2, y2, link.words.style, words, (link.source, link.target), named))
    return lines


def _dots(graph: Graph, points: list[Point], canvas: Canvas, chosen: bool) -> tuple[list[Dot], Labels]:
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
    return sorted(dots, key=lambda dot: dot.place), labels


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
SHORT_CHARS = 120


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A link as it is read from one of its notes."""

    words: str
    note: Memory
    edge_id: UUID | None = None
    short: str = ""  # the beginning of the note


@require_GET
@own_note
def graph(request: SignedInRequest) -> HttpResponse:
    """`?note=` shows what is around a note, else the best linked; `?q=` finds notes to look around or to link to that one."""
    user_id, asked = request.user.pk, request.GET.get("note", "")
    query = request.GET.get("q", "").strip()[:1000]
    chosen = memory_get(user_id, parse_id(asked)) if asked else None
    filters = GraphForm(request.GET)
    filters.is_valid()
    given = {name: value for name, value in filters.cleaned_data.items() if value}
    most = min(max(number_asked(request.GET.get("most")), STEP), MAX_NOTES)
    shown = graph_around(user_id, chosen.pk, most) if chosen else graph_of(user_id, most, **given)
    context = {
        "nav": "memory",
        "query": query,
        "pictures": pictures(shown, chosen=chosen is not None),
        "graph": shown,
        "listed": _listed(shown),
        "filters": filters,
        "narrowed": bool(given),
        "asked": f"&{urlencode(given)}" if given else "",
        "more": _more(shown, most),
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


class GraphForm(forms.Form):
    """What the picture is narrowed to; a value that it does not know counts as not given."""

    kind = forms.ChoiceField(label="Kind", required=False, choices=[("", "All kinds"), *Kind.choices])
    tag = forms.CharField(
        label="Tag",
        required=False,
        max_length=50,
        widget=forms.TextInput(attrs={"placeholder": "Any tag", "autocomplete": "off"}),
    )


def _more(shown: Graph, most: int) -> int:
    """The number of notes to show next; 0 where there are no more, or the picture is full."""
    return min(most + STEP, MAX_NOTES) if most < MAX_NOTES and shown.linked > len(shown.notes) else 0


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
    texts = [addressed(note.content) for note in found.notes]
    shorts = [truncated(" ".join(text.split()), SHORT_CHARS) for text in texts]
    for link in found.links:
        source, target = found.notes[link.source], found.notes[link.target]
        near[link.source].append(Neighbour(link.words.forth, target, short=shorts[link.target]))
        near[link.target].append(Neighbour(link.words.back, source, short=shorts[link.source]))
    return [(note, texts[place], near[place]) for place, note in enumerate(found.notes)]
