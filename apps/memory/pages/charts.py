"""Figures over time as bars: shapes for SVG, and the same in words and as a table."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import accumulate

from django.utils.formats import date_format

from apps.memory.summary.keeping import DAYS, Counted

WIDTH, HEIGHT = 600, 120
GAP = 0.22
"""Of a step that is left free between two bars."""
LEAST = 2.0
MONTHS, FEWEST = 24, 12
"""Shown of an old memory, and of a younger one."""
SHORT = 62
"""A memory younger than so many days is shown by day."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One step in time; `words` say its value, `height` is 0 where there is none."""

    label: str
    value: float
    words: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars side by side in WIDTH x HEIGHT; `sentence` says what they show, `line` are points of a curve above them."""

    title: str
    sentence: str
    step: str  # what one bar is: Day, Month
    unit: str  # what is counted
    bars: Sequence[Bar]
    line: str = ""
    totals: Sequence[str] = ()  # for each bar, where there is a curve

    width: int = WIDTH
    height: int = HEIGHT

    @property
    def table(self) -> list[tuple[str, str, str]]:
        """Label, value and total of each bar that has any, the newest first."""
        totals = self.totals or [""] * len(self.bars)
        rows = zip(self.bars, totals, strict=True)
        return [(bar.label, bar.words, total) for bar, total in rows if bar.value][::-1]


def growth(figures: Counted, today: date) -> Chart | None:
    """How many notes there were, and how many were saved by month, or in a young memory by day; None for an empty one."""
    if not figures.months:
        return None
    oldest = date.fromisoformat(f"{min(figures.months)}-01")
    young = (today - oldest).days < SHORT and sum(figures.days.values()) == figures.notes
    if young:
        steps = [(today - timedelta(days=back)).isoformat() for back in reversed(range(DAYS))]
        counts, step = [figures.days.get(key, 0) for key in steps], "Day"
        labels = [_day(key) for key in steps]
    else:
        steps = _months(today, oldest)
        counts, step = [figures.months.get(key, 0) for key in steps], "Month"
        labels = [date_format(date.fromisoformat(f"{key}-01"), "F Y") for key in steps]
    before = figures.notes - sum(counts)
    totals = [before + total for total in accumulate(counts)]
    span = "in the last 30 days" if young else f"in the last {len(steps)} months"
    return Chart(
        title="Growth",
        sentence=f"{sum(counts):,} saved {span}; {figures.notes:,} in all.",
        step=step,
        unit="Saved",
        bars=_bars(labels, counts, lambda count: f"{count:,.0f}"),
        line=_line(totals),
        totals=[f"{total:,}" for total in totals],
    )


def cost(figures: Counted, today: date) -> Chart | None:
    """The cost of reading by itself, by day, in tokens where no price is known; None where it cost nothing."""
    if not figures.cost:
        return None
    spent = {day: (tokens, dollars) for day, tokens, dollars in figures.cost}
    priced = any(dollars for _, dollars in spent.values())
    steps = [(today - timedelta(days=back)).isoformat() for back in reversed(range(DAYS))]
    values = [float(spent.get(key, (0, 0.0))[priced]) for key in steps]
    words = dollars_said if priced else tokens_said
    return Chart(
        title="Cost of remembering by itself",
        sentence=f"{words(sum(values))} in the last {DAYS} days.",
        step="Day",
        unit="Cost" if priced else "Tokens",
        bars=_bars([_day(key) for key in steps], values, words),
    )


def dollars_said(value: float) -> str:
    """`$1.20`, below a cent with fractions of one."""
    return f"${value:,.2f}" if value >= 0.01 or not value else f"${value:.4f}"


def tokens_said(value: float) -> str:
    """`1,200 tokens`."""
    return f"{value:,.0f} tokens"


def _day(key: str) -> str:
    return date_format(date.fromisoformat(key), "j F")


def _months(today: date, oldest: date) -> list[str]:
    end, first = today.year * 12 + today.month, oldest.year * 12 + oldest.month - 1
    numbers = range(end - min(MONTHS, max(FEWEST, end - first)), end)
    return [f"{number // 12:04}-{number % 12 + 1:02}" for number in numbers]


def _bars(labels: Sequence[str], values: Sequence[float], words: Callable[[float], str]) -> list[Bar]:
    most, step = max(values, default=0) or 1, WIDTH / len(values)
    bars = []
    for place, (label, value) in enumerate(zip(labels, values, strict=True)):
        height = max(LEAST, value / most * HEIGHT) if value else 0.0
        x, width = (place + GAP / 2) * step, (1 - GAP) * step
        bars.append(
            Bar(label, value, words(value), round(x, 1), round(HEIGHT - height, 1), round(width, 1), round(height, 1))
        )  # fmt: skip
    return bars


def _line(totals: Sequence[int]) -> str:
    most, step = totals[-1] or 1, WIDTH / len(totals)
    points = (
        ((place + 0.5) * step, HEIGHT - total / most * (HEIGHT - 4))
        for place, total in enumerate(totals)
    )
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
