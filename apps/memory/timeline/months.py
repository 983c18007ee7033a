"""The month that the timeline shows: its days with how much happened on each, and the months before and after it."""

import calendar
from dataclasses import dataclass
from datetime import date, timedelta

from django.utils import timezone
from django.utils.dateparse import parse_date

from .events import Events, begins

HEIGHT = 64
STEP = 10
BAR = 7
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
    """`chosen` is the one day that is shown of it, if any; `before` and `after` are other months with events."""

    first: date
    last: date
    chosen: date | None
    bars: tuple[Bar, ...]
    before: date | None
    after: date | None

    @property
    def span(self) -> tuple[date, date]:
        return (self.chosen, self.chosen) if self.chosen else (self.first, self.last)

    @property
    def total(self) -> int:
        return sum(bar.count for bar in self.bars)

    @property
    def width(self) -> int:
        return len(self.bars) * STEP


def month_of(events: Events, month: str, day: str) -> Month:
    """The month `2031-05` or that of the day `2031-05-17`; else the last one in which something happened."""
    chosen = _date(day)
    first = (chosen or _date(f"{month}-01") or _last(events)).replace(day=1)
    last = first.replace(day=calendar.monthrange(first.year, first.month)[1])
    before = events.latest(begins(first))
    after = events.earliest(begins(last + timedelta(days=1)))
    return Month(
        first=first,
        last=last,
        chosen=chosen,
        bars=_bars(events.within(first, last), first, last),
        before=timezone.localtime(before).date() if before else None,
        after=timezone.localtime(after).date() if after else None,
    )


def _date(text: str) -> date | None:
    try:
        found = parse_date(text) if text.isascii() else None
    except ValueError:
        return None
    return found if found and 1900 < found.year < 9000 else None


def _last(events: Events) -> date:
    return timezone.localtime(events.latest() or timezone.now()).date()


def _bars(events: Events, first: date, last: date) -> tuple[Bar, ...]:
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    counts = events.per_day(days)
    most = max(counts.values()) or 1
    bars = []
    for place, day in enumerate(days):
        height = max(LEAST, round(counts[day] / most * HEIGHT)) if counts[day] else 0
        bars.append(Bar(day, counts[day], place * STEP, HEIGHT - height, height))
    return tuple(bars)
