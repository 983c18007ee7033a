"""Declares figures and counts them. Until `processes.metrics_open` nothing is counted: commands need no figures."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Literal

logger = logging.getLogger(__name__)

Kind = Literal["counter", "histogram", "gauge"]
QUICK = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Buckets in seconds of what takes milliseconds."""
SLOW = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0, 180.0, 600.0)
"""Buckets in seconds of what waits for a model or runs a program."""
MAX_VALUES = 200
"""Label values of one figure beyond which further ones count as OTHER: each is kept for ever, and some come from outside."""
OTHER = "other"

Make = Callable[["Figure"], Any]
_make: Make | None = None
figures: dict[str, "Figure"] = {}
"""Every figure that processes count, by name."""


@dataclass(eq=False)
class Figure:
    """A counter, histogram or gauge. A gauge is summed over the processes that live.

    Values of labels are few and known (routes, states, our own tools); never an id, a name that users gave or what they said.
    """

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = QUICK
    _made: Any = None
    _children: dict[tuple[str, ...], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        figures[self.name] = self

    def add(self, *labels: str, amount: float = 1) -> None:
        """Counts `amount` more; a gauge may also take a negative one."""
        if _make is not None and (child := self._child(labels)) is not None:
            child.inc(amount)

    def observe(self, value: float, *labels: str) -> None:
        """Counts one value of a histogram."""
        if _make is not None and (child := self._child(labels)) is not None:
            child.observe(value)

    def set(self, value: float, *labels: str) -> None:
        """A gauge's value in this process."""
        if _make is not None and (child := self._child(labels)) is not None:
            child.set(value)

    @contextmanager
    def timed(self, *labels: str) -> Iterator[None]:
        """Observes the seconds that the block takes, also where it fails."""
        begun = perf_counter()
        try:
            yield
        finally:
            self.observe(perf_counter() - begun, *labels)

    def _child(self, labels: tuple[str, ...]) -> Any:
        """The counter of these labels; None where it cannot be made."""
        if (known := self._children.get(labels)) is not None:
            return known
        if len(labels) != len(self.labels):
            raise TypeError(f"{self.name} has the labels {self.labels}")
        if labels and len(self._children) >= MAX_VALUES:
            labels = (OTHER,) * len(labels)
        try:
            if self._made is None and _make is not None:
                self._made = _make(self)
            child = self._made.labels(*labels) if labels else self._made
        except OSError as error:  # a full disk: nobody else shall suffer from figures
            logger.warning("%s is not counted: %s", self.name, error.strerror or error)
            return None
        self._children[labels] = child
        return child


def counter(name: str, help: str, *labels: str) -> Figure:
    """A figure that only grows; its name ends with `_total`."""
    return Figure(name, "counter", help, labels)


def histogram(name: str, help: str, *labels: str, buckets: tuple[float, ...] = QUICK) -> Figure:
    """How many values there were below each bound, and their sum; in seconds where the name ends with `_seconds`."""
    return Figure(name, "histogram", help, labels, buckets)


def gauge(name: str, help: str, *labels: str) -> Figure:
    """A figure that goes up and down, summed over the processes of the machine that live."""
    return Figure(name, "gauge", help, labels)


queues: dict[str, Callable[[], tuple[int, float]]] = {}
"""name -> fn() -> (how many rows wait, seconds that the most overdue of them waits); quick however many rows there are."""


def use(make: Make | None) -> None:
    """Counts from now on with what `make` gives for a figure; None: nothing is counted."""
    global _make
    _make = make
    for figure in figures.values():
        figure._made = None
        figure._children = {}
