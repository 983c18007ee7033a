"""A benchmark's times, and what it hands back: tables to read and the same figures as JSON."""

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

from rich.console import Console
from rich.table import Table

Cell = str | int | float | bool | None
ROUNDS = 60
T = TypeVar("T")


class Timing(NamedTuple):
    """Milliseconds."""

    p50: float
    p95: float

    @classmethod
    def of(cls, times: Sequence[float]) -> Self:
        return cls(statistics.median(times), sorted(times)[int(len(times) * 0.95)])


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """Returns what the call returns, and its milliseconds."""
    began = time.perf_counter()
    result = call()
    return result, (time.perf_counter() - began) * 1000


def measure(function: Callable[[int], object], rounds: int = 0) -> Timing:
    """Call `function(0)`, `function(1)`, … and time each call; ROUNDS of them unless told."""
    return Timing.of([timed(partial(function, number))[1] for number in range(rounds or ROUNDS)])


@dataclass
class Section:
    """One table. A float is shown with `digits` places behind the point."""

    title: str
    columns: list[str]
    rows: list[list[Cell]] = field(default_factory=list)
    digits: int = 2

    def add(self, *cells: Cell) -> None:
        """Adds a row; it must have as many cells as there are columns."""
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns")
        self.rows.append(list(cells))


@dataclass
class Report:
    """The outcome of one run: what was run under which conditions, its tables, and whether each aim was met.

    `settings` are the conditions (sizes, models, machine); `aims` maps the wording of an aim to whether it held.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    sections: list[Section] = field(default_factory=list)
    aims: dict[str, bool] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def section(
        self, title: str, columns: list[str], rows: Iterable[Sequence[Cell]] = (), *, digits: int = 2
    ) -> Section:
        """A new table at the end of the report."""
        section = Section(title, columns, digits=digits)
        for row in rows:
            section.add(*row)
        self.sections.append(section)
        return section

    def to_json(self) -> dict[str, Any]:
        """Rows as objects keyed by their column."""
        return {
            "name": self.name,
            "settings": self.settings,
            "sections": [
                {
                    "title": part.title,
                    "rows": [dict(zip(part.columns, row, strict=True)) for row in part.rows],
                }
                for part in self.sections
            ],
            "aims": self.aims,
            "notes": self.notes,
        }

    def print(self, console: Console) -> None:
        """The tables, then the aims and notes."""
        for part in self.sections:
            table = Table(title=part.title, title_justify="left")
            for index, column in enumerate(part.columns):
                numeric = any(isinstance(row[index], int | float) for row in part.rows)
                table.add_column(column, justify="right" if numeric else "left")
            for row in part.rows:
                table.add_row(*(_shown(cell, part.digits) for cell in row))
            console.print(table)
        for aim, met in self.aims.items():
            console.print(f"[{'green' if met else 'red'}]{'met    ' if met else 'not met'}[/] {aim}")
        for note in self.notes:
            console.print(f"[dim]{note}[/dim]")


def _shown(cell: Cell, digits: int) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:,.{digits}f}"
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    return str(cell)
