"""The priority of a note over the chat turns, as a curve."""

from dataclasses import dataclass
from math import ceil

from apps.memory.models import PRIORITY_FLOOR, Memory

WIDTH, HEIGHT = 320, 104
LEFT, TOP, BOTTOM = 4, 8, 8
LEAST_TURNS = 20
"""The curve reaches at least so far ahead."""
FLAT = 1e-9


@dataclass(frozen=True, slots=True)
class Curve:
    """Points in a picture of WIDTH x HEIGHT; `past` ends where `ahead` begins, at present."""

    past: str
    ahead: str
    x: float
    y: float
    floor: float
    turns: int  # since the priority was written
    fades_in: int | None  # turns until it counts as faded; 0: it does, None: never

    width: int = WIDTH
    height: int = HEIGHT


def curve_of(note: Memory, cycle: int) -> Curve:
    """The curve of a note at the user's decay cycle. Unless it is changed it falls evenly to nothing."""
    passed = max(cycle - note.priority_cycle, 0)
    rate = note.decay_rate if note.decay_rate > FLAT else 0.0
    ends = note.priority / rate if rate else 0.0
    span = max(ends * 1.06, passed * 1.1, passed + LEAST_TURNS)
    if not rate:
        fades_in = None if note.priority >= PRIORITY_FLOOR else 0
    else:
        fades_in = max(ceil((note.priority - PRIORITY_FLOOR) / rate + FLAT) - passed, 0)

    def at(turn: float) -> tuple[float, float]:
        value = max(0.0, note.priority - rate * turn)
        x = LEFT + turn / span * (WIDTH - 2 * LEFT)
        return round(x, 1), round(_height(value), 1)

    corner = [ends] if rate else []
    past = [at(0), *(at(turn) for turn in corner if turn < passed), at(passed)]
    ahead = [at(passed), *(at(turn) for turn in corner if turn > passed), at(span)]
    x, y = at(passed)
    return Curve(
        _points(past), _points(ahead), x, y, round(_height(PRIORITY_FLOOR), 1), passed, fades_in
    )


def _height(value: float) -> float:
    return TOP + (1 - value) * (HEIGHT - TOP - BOTTOM)


def _points(points: list[tuple[float, float]]) -> str:
    return " ".join(f"{x},{y}" for x, y in points)
