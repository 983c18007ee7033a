"""Dates that a question names, as spans of time with how much they say."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

EXACT = 1.0
"""A day; the days beside it count too, since people tell of yesterday."""
MONTH = 0.5
YEAR = 0.3
WEEK = 0.7

_MONTH_NAMES = (
    "january januar janvier enero gennaio janeiro januari jan",
    "february februar février febrero febbraio fevereiro februari feb",
    "march märz mars marzo março maart mar",
    "april avril abril aprile apr",
    "may mai mayo maggio maio mei",
    "june juni juin junio giugno junho jun",
    "july juli juillet julio luglio julho jul",
    "august août agosto augustus aug",
    "september septembre septiembre settembre setembro sept sep",
    "october oktober octobre octubre ottobre outubro oct",
    "november novembre noviembre novembro nov",
    "december dezember décembre diciembre dicembre dezembro december dec",
)
MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES, 1) for name in names.split()}
_AMBIGUOUS = frozenset({"may", "march", "mar", "sep", "mars"})
_BEFORE_MONTH = frozenset(
    [
        "in",
        "of",
        "since",
        "during",
        "by",
        "until",
        "on",
        "early",
        "late",
        "mid",
        "last",
        "this",
        "next",
        "im",
        "seit",
        "en",
        "de",
        "am",
    ]
)
_WORD = re.compile(r"\d+|[^\W\d_]+")
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})(?:-(\d{1,2}))?\b")
_AGO = re.compile(r"\b(\d{1,3}|an?|one|two|three|four|five|six)\s+(day|week|month|year)s?\s+ago\b")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
DATE_WORDS = frozenset([*MONTHS, *_WEEKDAYS, "today", "yesterday", "week", "month", "year", "ago"])
"""A question without any of these and without a digit names no date."""


@dataclass(frozen=True, slots=True)
class Span:
    """Unix seconds from `start` to before `end`."""

    start: float
    end: float
    strength: float


@dataclass(frozen=True, slots=True)
class _Named:
    years: list[int]
    months: list[int]
    days: list[int]


def named_dates(question: str, *, now: datetime, first: datetime, last: datetime) -> list[Span]:
    """The spans a question names; a month without a year stands for each such month from `first` to `last`.

    All times are aware. At most a few hundred spans; none for a question that names no date.
    """
    text = question.lower()
    spans = _iso_spans(text) + _relative_spans(text, now)
    named = _named(text)
    years = named.years or list(range(first.year, min(last.year, first.year + 60) + 1))
    if named.months:
        for year in years:
            for month in named.months:
                spans += _month_spans(year, month, named.days)
    elif named.years:
        spans += [_span(_start(year, 1), _start(year + 1, 1), YEAR) for year in named.years]
    return spans


def _named(text: str) -> _Named:
    words = _WORD.findall(text)
    years = [int(word) for word in words if len(word) == 4 and word[:2] in {"19", "20"}]
    months, days = [], []
    for place, word in enumerate(words):
        month = MONTHS.get(word)
        if month is None or (word in _AMBIGUOUS and not _means_month(words, place)):
            continue
        months.append(month)
        days += [int(near) for near in _around(words, place) if near.isdigit() and 1 <= int(near) <= 31]
    return _Named(years, months, days)


def _around(words: list[str], place: int) -> list[str]:
    """The word before a month and the one after it, skipping "of", "the" and endings like the "rd" of 23rd."""
    skipped = {"of", "the", "st", "nd", "rd", "th", "de"}
    before = [word for word in words[max(0, place - 3) : place] if word not in skipped]
    after = [word for word in words[place + 1 : place + 3] if word not in skipped]
    return before[-1:] + after[:1]


def _means_month(words: list[str], place: int) -> bool:
    near = _around(words, place)
    return any(word.isdigit() for word in near) or words[max(0, place - 1)] in _BEFORE_MONTH


def _month_spans(year: int, month: int, days: list[int]) -> list[Span]:
    whole = _span(_start(year, month), _start(year, month + 1), MONTH)
    exact = []
    for day in days:
        try:
            middle = datetime(year, month, day, tzinfo=UTC)
        except ValueError:
            continue
        exact.append(_span(middle - timedelta(days=1), middle + timedelta(days=2), EXACT))
    return [whole, *exact]


def _iso_spans(text: str) -> list[Span]:
    spans: list[Span] = []
    for year, month, day in _ISO.findall(text):
        if 1900 <= int(year) < 2200 and 1 <= int(month) <= 12:
            spans += _month_spans(int(year), int(month), [int(day)] if day else [])
    return spans


def _relative_spans(text: str, now: datetime) -> list[Span]:
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    spans: list[Span] = []
    for phrase, back, length, strength in (
        ("today", 0, 1, EXACT),
        ("yesterday", 1, 1, EXACT),
        ("this week", today.weekday(), 7, WEEK),
        ("last week", 7 + today.weekday(), 7, WEEK),
    ):
        if re.search(rf"\b{phrase}\b", text):
            begin = today - timedelta(days=back)
            spans.append(_span(begin, begin + timedelta(days=length), strength))
    month, year = today.month, today.year
    if "this month" in text:
        spans.append(_span(_start(year, month), _start(year, month + 1), MONTH))
    if "last month" in text:
        spans.append(_span(_start(year, month - 1), _start(year, month), MONTH))
    if "last year" in text:
        spans.append(_span(_start(year - 1, 1), _start(year, 1), YEAR))
    return spans + _ago_spans(text, today) + _weekday_spans(text, today)


def _ago_spans(text: str, today: datetime) -> list[Span]:
    spans = []
    for number, unit in _AGO.findall(text):
        days = (_NUMBERS.get(number) or int(number)) * _UNIT_DAYS[unit]
        if days < 365 * 60:
            slack = timedelta(days=_UNIT_DAYS[unit] / 2)
            middle = today - timedelta(days=days)
            spans.append(
                _span(middle - slack, middle + slack + timedelta(days=1), WEEK if unit != "day" else EXACT)
            )
    return spans


def _weekday_spans(text: str, today: datetime) -> list[Span]:
    spans = []
    for number, name in enumerate(_WEEKDAYS):
        if re.search(rf"\b(?:last|on) {name}\b", text):
            begin = today - timedelta(days=(today.weekday() - number - 1) % 7 + 1)
            spans.append(_span(begin, begin + timedelta(days=1), EXACT))
    return spans


def _start(year: int, month: int) -> datetime:
    """The first of a month; months beyond 1..12 run into the years beside."""
    carry, index = divmod(month - 1, 12)
    return datetime(year + carry, index + 1, 1, tzinfo=UTC)


def _span(start: datetime, end: datetime, strength: float) -> Span:
    return Span(start.timestamp(), end.timestamp(), strength)
