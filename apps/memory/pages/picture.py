"""The picture of a graph: which shapes stand where, and the words at them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from apps.core.addressing import addressed
from apps.core.text import truncated
from apps.memory.models import Memory, Relation, Status
from apps.memory.notes.linked import STEP

from .drawing import LETTER, Label, Labels, Point, fitted, positions, spaced


@dataclass(frozen=True, slots=True)
class Words:
    """The names of a link: `forth` from its source to its target, `back` the other way; `style` is how its line is drawn."""

    forth: str
    back: str
    style: str = "plain"

    @classmethod
    def of(cls, relation: str, *ends: Memory) -> "Words":
        """Those of a relation between two notes; another text than Izzy's own stands for itself. What contradicted a note that
        does not hold any more is resolved."""
        if relation == Relation.CONTRADICTS and any(note.status != Status.ACTIVE for note in ends):
            return cls("contradicted", "contradicted", "replaced")
        return KNOWN.get(relation) or cls(relation.replace("_", " "), relation.replace("_", " "))


KNOWN: dict[str, Words] = {
    Relation.RELATED: Words("goes with", "goes with"),
    Relation.SUPERSEDES: Words("replaces", "was replaced by", "replaced"),
    Relation.CONTRADICTS: Words("contradicts", "contradicts", "against"),
    Relation.ELABORATES: Words("adds to", "has more in"),
}


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


LABEL_CHARS = 28
SMALL = 0.9
"""How much narrower the words of a link are."""
WHOLE_CHARS = 400
LAYOUTS = 64
"""Graphs whose places a process keeps: numbers, no words."""
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
    radius: str
    words: str
    label: Label
    chosen: bool
    text: str

    @property
    def whole(self) -> str:
        """As much of the text as is read out, and shown where the note is pointed at."""
        return truncated(" ".join(self.text.split()), WHOLE_CHARS)


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A link; its `words` stand in its middle, `named`: whether they do so unasked."""

    x1: float
    y1: float
    x2: float
    y2: float
    style: str
    words: str
    ends: str  # the places of both notes
    named: bool


@dataclass(frozen=True, slots=True)
class Picture:
    canvas: Canvas
    dots: Sequence[Dot]
    lines: Sequence[DrawnLine]

    @property
    def lines_drawn(self) -> SafeString:
        """The lines with their words, as SVG. A template or `format_html` would take several times as long: there are hundreds of
        shapes, and of what they say the words alone are anybody's."""
        drawn = []
        for line in self.lines:
            ends = f'data-ends="{line.ends}"'
            middle = f'x="{(line.x1 + line.x2) / 2:.1f}" y="{(line.y1 + line.y2) / 2 + 4:.1f}"'
            drawn.append(
                f'<line class="graph-line graph-{line.style}" x1="{line.x1}" y1="{line.y1}" x2="{line.x2}" y2="{line.y2}" {ends}></line>'
                f'<text class="graph-name{" graph-named" * line.named}" {middle} {ends}>{escape(line.words)}</text>'
            )
        return mark_safe("".join(drawn))  # noqa: S308  the words are escaped

    @property
    def dots_drawn(self) -> SafeString:
        """The notes as SVG: links to their pages."""
        drawn, at = [], reverse("memory:overview")
        for dot in self.dots:
            is_past = dot.note.status == Status.SUPERSEDED
            kinds = f"{' graph-chosen' * dot.chosen}{' graph-quiet' * (not dot.label.shown)}{' graph-past' * is_past}"
            current, centre = ' aria-current="true"' * dot.chosen, f'cx="{dot.x}" cy="{dot.y}"'
            beside = f'x="{dot.label.x}" y="{dot.label.y}" text-anchor="{dot.label.anchor}"'
            drawn.append(
                f'<a class="graph-dot{kinds}" href="{at}{dot.note.pk}/" data-place="{dot.place}" aria-label="{escape(dot.whole)}"{current}>'
                f'<circle class="graph-reach" {centre} r="18"></circle><circle class="graph-circle" {centre} r="{dot.radius}"></circle>'
                f"<text {beside}>{escape(dot.words)}</text></a>"
            )
        return mark_safe("\n".join(drawn))  # noqa: S308  the words are escaped


def pictures(graph: Graph, *, chosen: bool) -> list[Picture]:
    """The same graph for a wide and for a narrow page; `chosen`: its first note is the one that was asked for."""
    count = len(graph.notes)
    if not count:
        return []
    drawn = []
    for canvas, places in _laid_out(
        count, tuple((link.source, link.target) for link in graph.links), chosen
    ):
        points = list(places)
        dots, labels = _dots(graph, points, canvas, chosen)
        drawn.append(Picture(canvas, dots, _lines(graph, points, labels)))
    return drawn


@lru_cache(maxsize=LAYOUTS)
def _laid_out(
    count: int, links: tuple[tuple[int, int], ...], chosen: bool
) -> tuple[tuple[Canvas, tuple[Point, ...]], ...]:
    """Where the notes of a graph stand on each canvas, by the numbers alone: looking at a picture again finds it again."""
    places = positions(count, list(links), pinned=chosen)
    grown = max(1.0, (count / STEP) ** 0.5)  # so that more notes stand no closer
    laid = []
    for size in CANVASES:
        height = min(size.height, size.least + 16 * count)
        canvas = replace(size, width=round(size.width * grown), height=round(height * grown))
        room = (canvas.width - 2 * canvas.side, canvas.height - 2 * canvas.top)
        corner = np.array([canvas.side, canvas.top])
        fitting = corner + fitted(places, canvas.width / canvas.height) * np.array(room)
        apart = spaced(fitting, LEAST_APART, tuple(corner), tuple(corner + room))
        laid.append((canvas, tuple((round(x, 1), round(y, 1)) for x, y in apart.tolist())))
    return tuple(laid)


def _lines(graph: Graph, points: list[Point], labels: Labels) -> list[DrawnLine]:
    """The links; those that say more than that two notes go together have their words in the picture where there is room."""
    lines = []
    for link in graph.links:
        (x1, y1), (x2, y2) = points[link.source], points[link.target]
        words, middle = link.words.forth, ((x1 + x2) / 2, (y1 + y2) / 2 + 4)
        named = link.words is not KNOWN[Relation.RELATED] and labels.take(
            middle, len(words) * LETTER * SMALL
        )
        lines.append(
            DrawnLine(x1, y1, x2, y2, link.words.style, words, f"{link.source} {link.target}", named)
        )
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
        dots.append(
            Dot(graph.notes[place], place, x, y, f"{radii[place]:.1f}", words, label, in_middle, text)
        )
    return sorted(dots, key=lambda dot: dot.place), labels


def label_words(text: str) -> str:
    """The beginning of a text, cut at a word where one ends near."""
    line = " ".join(text.split())
    if len(line) <= LABEL_CHARS:
        return line
    cut = line[: LABEL_CHARS - 1]
    at = cut.rfind(" ")
    return (cut[:at] if at > LABEL_CHARS // 2 else cut).rstrip(" ,;:.") + "…"
