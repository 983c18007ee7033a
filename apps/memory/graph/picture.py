"""A graph as shapes: circles, lines and as many labels as find room."""

from collections import defaultdict
from dataclasses import dataclass, replace

from apps.memory.addressing import addressed
from apps.memory.models import Memory

from .labels import LETTER, Label, Labels
from .layout import Points, fitted, positions
from .relations import Words
from .selectors import Graph

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
