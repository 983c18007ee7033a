"""A graph as shapes: where its notes stand, and where their words go."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import hypot

import numpy as np
from numpy.typing import NDArray

STEPS = 160
GRAVITY = 0.35
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5))

Points = NDArray[np.float64]


def positions(count: int, links: Sequence[tuple[int, int]], *, pinned: bool) -> Points:
    """Places on no particular scale, (count, 2); with `pinned` the others gather round the first.

    Forces as in T. Fruchterman and E. Reingold, "Graph drawing by force-directed placement" (1991): all notes push each
    other away by k²/d, links pull by d²/k, and what they may move shrinks from step to step; a weak pull to the middle
    keeps what is not linked together. It begins with a spiral and has no chance in it: the same notes stand at the same
    places. O(STEPS · count²) in time: 48 notes take some 10 ms.
    """
    if count == 0:
        return np.zeros((0, 2))
    number = np.arange(count, dtype=np.float64)
    radius, angle = 0.5 * np.sqrt(number / max(count - 1, 1)), number * GOLDEN_ANGLE
    x, y = radius * np.cos(angle), radius * np.sin(angle)
    ideal = 1.0 / np.sqrt(count)
    pairs = np.array(sorted({(min(link), max(link)) for link in links}), dtype=np.intp).reshape(-1, 2)
    one, two = pairs[:, 0], pairs[:, 1]
    for step in range(STEPS):
        apart_x, apart_y = x[:, None] - x, y[:, None] - y
        push = ideal**2 / np.maximum(apart_x**2 + apart_y**2, 1e-6)
        moved_x, moved_y = (apart_x * push).sum(axis=1), (apart_y * push).sum(axis=1)
        pull = np.hypot(apart_x[one, two], apart_y[one, two]) / ideal
        for moved, along in ((moved_x, apart_x[one, two]), (moved_y, apart_y[one, two])):
            np.subtract.at(moved, one, along * pull)
            np.add.at(moved, two, along * pull)
        moved_x -= GRAVITY * x
        moved_y -= GRAVITY * y
        length = np.maximum(np.hypot(moved_x, moved_y), 1e-9)
        share = np.minimum(length, 0.12 * (1 - step / STEPS)) / length
        x += moved_x * share
        y += moved_y * share
        if pinned:
            x -= x[0]
            y -= y[0]
    return np.stack([x, y], axis=1)


def fitted(places: Points, aspect: float) -> Points:
    """In the unit square, turned so that it is as wide as the picture is (`aspect`: its width by its height), then stretched until
    it fills it; a few notes fill less of it."""
    filled = min(1.0, 0.3 + 0.07 * len(places))
    centred = places - places.mean(axis=0)
    if len(places) > 2:
        axes = np.linalg.eigh(np.cov(centred.T))[1]
        centred = centred @ (axes[:, ::-1] if aspect >= 1 else axes)
    low, high = centred.min(axis=0), centred.max(axis=0)
    spread = np.maximum(high - low, 1e-6)
    filling: Points = np.where(high - low < 1e-6, 0.5, (centred - low) / spread)
    return (filling - 0.5) * filled + 0.5


def spaced(places: Points, least: float, low: tuple[float, float], high: tuple[float, float]) -> Points:
    """Places of which no two are nearer than `least`, as far as there is room between the corners `low` and `high`."""
    angle = np.arange(len(places)) * GOLDEN_ANGLE  # two at one place part in different directions
    moved: Points = places + 0.01 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for _ in range(40):
        apart = moved[:, None, :] - moved[None, :, :]
        distance = np.maximum(np.hypot(apart[:, :, 0], apart[:, :, 1]), 1e-6)
        short = np.maximum(least - distance, 0.0)
        np.fill_diagonal(short, 0.0)
        if not short.any():
            break
        moved = moved + (apart / distance[:, :, None] * short[:, :, None]).sum(axis=1) * 0.5
        moved = np.clip(moved, low, high)
    return moved


LETTER, LINE, GAP = 7.0, 16.0, 5.0
"""The room that words take, in units of the picture: width of a letter on average, height of a line, space before."""

Point = tuple[float, float]
Box = tuple[float, float, float, float]
SIDES: tuple[Point, ...] = ((1, 0), (-1, 0), (0, 1), (0, -1))
"""Right, left, below, above."""


@dataclass(frozen=True, slots=True)
class Label:
    """`x` and `y` of the baseline at its `anchor`; one that found no room is not `shown` until it is pointed at."""

    x: float
    y: float
    anchor: str
    shown: bool


class Labels:
    """Places one label after the other: who comes first has the choice."""

    def __init__(self, circles: Sequence[tuple[Point, float]], width: float, height: float) -> None:
        self._circles = circles
        self._width, self._height = width, height
        self._taken = [(x - r - 2, y - r - 2, x + r + 2, y + r + 2) for (x, y), r in circles]

    def beside(self, place: int, width: float, neighbours: Sequence[Point]) -> Label:
        """The label of circle `place`; its lines lead to `neighbours`."""
        (x, y), radius = self._circles[place]

        def crowded(side: Point) -> float:
            """How much the lines lead to a side."""
            away = [(other[0] - x, other[1] - y) for other in neighbours]
            return sum(max(0.0, side[0] * dx + side[1] * dy) / (hypot(dx, dy) or 1.0) for dx, dy in away)

        for side in sorted(SIDES, key=crowded):
            label, box = self._at((x, y), radius, width, side)
            if self._is_free(box, place):
                self._taken.append(box)
                return label
        label, box = self._at((x, y), radius, width, (0, 1))
        if box[3] > self._height:
            label, _ = self._at((x, y), radius, width, (0, -1))
        return replace(label, shown=False)

    def take(self, middle: Point, width: float) -> bool:
        """Whether words fit there, one line high; then nothing else goes there."""
        x, y = middle
        box = x - width / 2, y - LINE + 4, x + width / 2, y + 4
        free = self._is_free(box, -1)
        if free:
            self._taken.append(box)
        return free

    def _at(self, point: Point, radius: float, width: float, side: Point) -> tuple[Label, Box]:
        x, y = point
        if side[0]:
            label_x, label_y, anchor = (
                x + side[0] * (radius + GAP),
                y + 4,
                "start" if side[0] > 0 else "end",
            )
            left = label_x if side[0] > 0 else label_x - width
        else:
            label_x = min(max(x, width / 2 + 2), self._width - width / 2 - 2)
            label_y, anchor = y + radius + LINE - 2 if side[1] > 0 else y - radius - GAP, "middle"
            left = label_x - width / 2
        box = left, label_y - LINE + 4, left + width, label_y + 4
        return Label(round(label_x, 1), round(label_y, 1), anchor, True), box

    def _is_free(self, box: Box, own: int) -> bool:
        """Whether a box is within the picture and meets no other, but for the circle that it is the label of."""
        left, top, right, bottom = box
        others = [other for place, other in enumerate(self._taken) if place != own]
        within = left >= 0 and right <= self._width and top >= 0 and bottom <= self._height
        return within and not any(
            left < other[2] and other[0] < right and top < other[3] and other[1] < bottom
            for other in others
        )
