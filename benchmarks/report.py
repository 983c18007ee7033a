"""What a benchmark hands back: tables to read and the same figures as JSON."""

from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.table import Table

Cell = str | int | float | bool | None


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

    def section(self, title: str, columns: list[str], *, digits: int = 2) -> Section:
        """A new table at the end of the report."""
        section = Section(title, columns, digits=digits)
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
            console.print(_table(part))
        for aim, met in self.aims.items():
            console.print(f"[{'green' if met else 'red'}]{'met    ' if met else 'not met'}[/] {aim}")
        for note in self.notes:
            console.print(f"[dim]{note}[/dim]")


def _table(section: Section) -> Table:
    table = Table(title=section.title, title_justify="left")
    for index, column in enumerate(section.columns):
        numeric = any(isinstance(row[index], int | float) for row in section.rows)
        table.add_column(column, justify="right" if numeric else "left")
    for row in section.rows:
        table.add_row(*(_shown(cell, section.digits) for cell in row))
    return table


def _shown(cell: Cell, digits: int) -> str:
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:,.{digits}f}"
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    return str(cell)
