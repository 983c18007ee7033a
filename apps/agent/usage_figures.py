"""The usage of a user as the page shows it: figures, a bar for each day, and what it went into in plain words."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from apps.agent.tools.registry import tool_title

PURPOSES = {
    "chat": "Conversations",
    "title": "Titles of conversations",
    "summary": "Summing up long conversations",
    "gate": "Remembering by itself",
    "extraction": "Remembering by itself",
    "expansion": "Deep memory",
    "synthesis": "Deep memory",
    "builder": "Building capabilities",
    "connection_test": "Testing the connection",
}
CHEAP = 0.1
BAR_WIDTH, CHART_HEIGHT, LEAST_HEIGHT = 10, 100, 1.5


@dataclass(frozen=True, slots=True)
class Line:
    """Usage of one purpose, model or day."""

    label: str
    calls: int
    read: int  # tokens, cached ones too
    written: int
    cost: float  # US dollars
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Bar:
    """A day of the chart, in the units of its view box; `height` is 0 for a day without use."""

    day: date
    words: str
    x: int
    y: float
    height: float
    width: int = BAR_WIDTH - 2


def total_line(total: dict[str, Any]) -> Line:
    return _line("", total)


def lines(rows: Iterable[dict[str, Any]], key: str) -> list[Line]:
    """The rows of `usage_summary` under their labels, those of one label added up, the most read first."""
    found: dict[str, Line] = {}
    for row in rows:
        new = _line(PURPOSES.get(row[key], row[key]) if key == "purpose" else str(row[key]), row)
        old = found.get(new.label)
        found[new.label] = _sum(old, new) if old else new
    return sorted(found.values(), key=lambda line: (-(line.read + line.written), line.label))


def tool_lines(rows: Iterable[dict[str, Any]]) -> list[Line]:
    """Calls of tools by what the tools are called."""
    return [
        Line(tool_title(row["name"]), calls=row["calls"], read=0, written=0, cost=0, failed=row["failed"])
        for row in rows
    ]


def bars(rows: Iterable[dict[str, Any]], first: date, days: int, *, by_cost: bool) -> list[Bar]:
    """One bar for each day from `first` on, as high as its share of the highest."""
    by_day = {row["day"]: _line("", row) for row in rows}
    values = {day: (line.cost if by_cost else line.read + line.written) for day, line in by_day.items()}
    highest = max(values.values(), default=0) or 1
    chart = []
    for place in range(days):
        day = first + timedelta(days=place)
        value = values.get(day, 0)
        height = max(LEAST_HEIGHT, CHART_HEIGHT * value / highest) if value else 0.0
        words = money(value) if by_cost else f"{value:,.0f} tokens"
        chart.append(
            Bar(day, words, place * BAR_WIDTH + 1, round(CHART_HEIGHT - height, 2), round(height, 2))
        )
    return chart


def money(dollars: float) -> str:
    """`$12.30`, and below ten cents with the fractions of a cent that calls cost: `$0.0123`."""
    return f"${dollars:,.2f}" if dollars >= CHEAP or dollars == 0 else f"${dollars:.4f}"


def _line(label: str, row: dict[str, Any]) -> Line:
    read = row["input_tokens"] + row["cache_read_tokens"] + row["cache_write_tokens"]
    return Line(label, row["calls"], read, row["output_tokens"], row["cost_usd"], row["failed"])


def _sum(one: Line, other: Line) -> Line:
    return Line(
        one.label,
        one.calls + other.calls,
        one.read + other.read,
        one.written + other.written,
        one.cost + other.cost,
        one.failed + other.failed,
    )
