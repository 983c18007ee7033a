"""A month of a timeline: its days as bars, the ways to the months beside it, and the years there are."""

import calendar
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any, Protocol

from django.db.models import Case, Count, Q, QuerySet, Value, When
from django.utils import timezone
from django.utils.dateparse import parse_date

HEIGHT = 64
STEP = 10
LEAST = 3


@dataclass(frozen=True, slots=True)
class Bar:
    """A day of the month in the picture, in its units; `height` 0 where nothing happened."""

    day: date
    count: int
    x: int
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class Month:
    """The month that is shown: its days with how much happened on each."""

    first: date
    last: date
    chosen: date | None  # the one day that is shown of it, if any
    bars: Sequence[Bar]
    before: date | None  # in the month before it with events
    after: date | None
    years: Sequence[int]  # to jump to, the newest first

    @property
    def shown(self) -> int:
        """How much happened on the days that are shown."""
        return sum(bar.count for bar in self.bars if self.chosen in {None, bar.day})

    @property
    def total(self) -> int:
        return sum(bar.count for bar in self.bars)

    @property
    def width(self) -> int:
        return len(self.bars) * STEP


class Dated(Protocol):
    """Events, by their time."""

    def edge(self, *, before: datetime | None = None, since: datetime | None = None) -> datetime | None:
        """The time of the last one, of the last one before a moment, or of the first one since a moment."""

    def first(self) -> datetime | None:
        """The time of the first one."""

    def per_day(self, days: Collection[date]) -> dict[date, int]:
        """How many there are on each of these days."""


MAX_YEARS = 120


def month_of(events: Dated, *, month: str, day: str, year: str) -> Month:
    """The month `2031-05` or that of the day `2031-05-17`, the last one of the year `2031` with events; else the last one in which
    something happened."""
    latest, oldest = events.edge(), events.first()
    chosen, asked = _date(day), _date(f"{year}-12-01")
    first = chosen or _date(f"{month}-01")
    if asked and (first is None or first.year != asked.year):
        last_in = events.edge(before=begins(date(asked.year + 1, 1, 1)))
        day_in = timezone.localtime(last_in).date() if last_in else asked
        first, chosen = (day_in if day_in.year == asked.year else asked), None
    first = (first or timezone.localtime(latest or timezone.now()).date()).replace(day=1)
    last = first.replace(day=calendar.monthrange(first.year, first.month)[1])
    counts = events.per_day([first + timedelta(days=number) for number in range(last.day)])
    most = max(counts.values()) or 1
    bars = []
    for place, (each, count) in enumerate(counts.items()):
        height = max(LEAST, round(count / most * HEIGHT)) if count else 0
        bars.append(Bar(each, count, place * STEP, HEIGHT - height, height))
    before = events.edge(before=begins(first))
    after = events.edge(since=begins(last + timedelta(days=1)))
    newest = timezone.localtime(latest or timezone.now()).year
    from_year = max(timezone.localtime(oldest).year if oldest else newest, newest - MAX_YEARS)
    return Month(
        first=first,
        last=last,
        chosen=chosen,
        bars=bars,
        before=timezone.localtime(before).date() if before else None,
        after=timezone.localtime(after).date() if after else None,
        years=range(max(newest, first.year), min(from_year, first.year) - 1, -1),
    )


def begins(day: date) -> datetime:
    """When a day begins where the reader is."""
    return timezone.make_aware(datetime.combine(day, time.min))


def span(first: date, last: date, column: str = "created_at") -> Q:
    """From the beginning of `first` to the end of `last`."""
    limits = {f"{column}__gte": begins(first), f"{column}__lt": begins(last + timedelta(days=1))}
    return Q(**limits)


def counts_per_day(
    rows: "QuerySet[Any]", days: Collection[date], column: str = "created_at"
) -> dict[date, int]:
    """How many of the rows, which are those of these days (in their order), each day has."""
    ends = (Q(**{f"{column}__lt": begins(day + timedelta(days=1))}) for day in days)
    # The first day whose end is later: half as long a statement as a count for each day, and a quarter of the time.
    place = Case(*(When(end, then=Value(number)) for number, end in enumerate(ends)))
    found = rows.order_by().annotate(place=place).values("place").annotate(count=Count("pk"))
    counts = dict(found.values_list("place", "count"))
    return {day: counts.get(number, 0) for number, day in enumerate(days)}


def _date(text: str) -> date | None:
    try:
        found = parse_date(text) if text.isascii() else None
    except ValueError:
        return None
    return found if found and 1900 < found.year < 9000 else None
