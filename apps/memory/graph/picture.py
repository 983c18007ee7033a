"""A graph as shapes: circles, lines and as many labels as find room."""

from dataclasses import dataclass, replace

from apps.memory.addressing import addressed
from apps.memory.models import Memory

from .layout import Points, fitted, positions
from .relations import Words
from .selectors import Graph

LABEL_CHARS = 28
LETTER, LINE = 6.4, 16.0
"""The room a label takes: width of a letter on average and height of a line, in units of the picture."""
GAP = 5.0

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Canvas:
    """A size the picture is drawn in, in CSS pixels at its natural size; labels need `side` at left and right."""

    name: str
    width: int
    height: int
    side: int
    top: int = 28

    def for_notes(self, count: int) -> "Canvas":
        """Lower where there is little to show."""
        return replace(self, height=min(self.height, 200 + 16 * count))


WIDE, TALL = Canvas("wide", 912, 560, 90), Canvas("tall", 358, 520, 48)


@dataclass(frozen=True, slots=True)
class Dot:
    """A note: its circle, the text beside it (`anchor` and place), and whether that text found room."""

    note: Memory
    place: int
    x: float
    y: float
    radius: float
    label: str
    label_x: float
    label_y: float
    anchor: str
    shown: bool
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
        words = Words.of(link.relation)
        ends = points[link.source], points[link.target]
        lines.append(Line(*ends[0], *ends[1], words.style, words.forth, (link.source, link.target)))
    return lines


def _dots(graph: Graph, points: list[tuple[float, float]], canvas: Canvas, chosen: bool) -> list[Dot]:
    degrees = graph.degrees()
    radii = [min(5.0 + 1.1 * degree, 13.0) for degree in degrees]
    taken = [_around(point, radius + 2) for point, radius in zip(points, radii, strict=True)]
    dots = []
    order = sorted(range(len(points)), key=lambda place: (place > 0 or not chosen, -degrees[place], place))
    for place in order:
        text = addressed(graph.notes[place].content)
        label = short(text)
        bold = 1.15 if chosen and place == 0 else 1.0
        width = len(label) * LETTER * bold
        (label_x, label_y, anchor), box = _beside(points[place], radii[place], width, canvas, taken, place)
        if box:
            taken.append(box)
        x, y = points[place]
        dots.append(
            Dot(
                note=graph.notes[place],
                place=place,
                x=x,
                y=y,
                radius=radii[place],
                label=label,
                label_x=label_x,
                label_y=label_y,
                anchor=anchor,
                shown=box is not None,
                chosen=chosen and place == 0,
                text=text,
            )
        )
    return sorted(dots, key=lambda dot: dot.place)


def _around(point: tuple[float, float], radius: float) -> Box:
    return point[0] - radius, point[1] - radius, point[0] + radius, point[1] + radius


def _beside(
    point: tuple[float, float], radius: float, width: float, canvas: Canvas, taken: list[Box], own: int
) -> tuple[tuple[float, float, str], Box | None]:
    """Where a label goes (x, y of its baseline, anchor) and the room it takes; no room: below, until it is pointed at."""
    x, y = point
    across = min(max(x, width / 2 + 2), canvas.width - width / 2 - 2)
    choices = [
        (x + radius + GAP, y + 4, "start", x + radius + GAP),
        (x - radius - GAP, y + 4, "end", x - radius - GAP - width),
        (across, y + radius + LINE - 2, "middle", across - width / 2),
        (across, y - radius - GAP, "middle", across - width / 2),
    ]
    for label_x, label_y, anchor, left in choices:
        box = (left, label_y - LINE + 4, left + width, label_y + 4)
        inside = left >= 0 and box[2] <= canvas.width and box[1] >= 0 and box[3] <= canvas.height
        if inside and not any(_meet(box, other) for place, other in enumerate(taken) if place != own):
            return (round(label_x, 1), round(label_y, 1), anchor), box
    below = choices[2] if y + radius + LINE < canvas.height else choices[3]
    return (round(below[0], 1), round(below[1], 1), below[2]), None


def _meet(one: Box, two: Box) -> bool:
    return one[0] < two[2] and two[0] < one[2] and one[1] < two[3] and two[1] < one[3]
