"""Dates that a question names, as spans of time with how much they say."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import chain, islice, pairwise

EXACT = 1.0  # a day; the days beside it count too, since people speak of what happened the day before
MONTH = 0.5
YEAR = 0.3
WEEK = 0.7
MAX_SPANS = 64  # each is a pass over all of the owner's rows
MAX_YEARS = 60  # of those that a month without a year may stand for
FIRST_YEAR, LAST_YEAR = 1900, 2099
LEAP_YEAR = 2000

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
_NUMERIC = re.compile(r"(?<!\d)(?<!\d[./])(\d{1,4})([./-])(\d{1,4})(?:\2(\d{1,4}))?(?!\d|\2\d)")
_ON = """on since until till before after from by of the am vom seit bis nach vor dem den le du depuis el desde il dal til op
    sinds på od dne на от с"""
_BEFORE_DAY = frozenset(_ON.split())
"""Behind one of them 5/7 is a day though no year stands beside it; else it may be a share."""
_LONGEST_BEFORE = max(map(len, _BEFORE_DAY))
_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_BETWEEN = frozenset(
    {"of", "the", "st", "nd", "rd", "th", "de"}
)  # a month and its day or year: the 3rd of May
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
    """A month in a question; without a year it stands for each of the years in question."""

    month: int
    day: int | None = None
    year: int | None = None


def named_dates(
    question: str,
    *,
    now: datetime,
    first: datetime,
    last: datetime,
    day_first: bool | None = None,
    zone: tzinfo = UTC,
) -> list[Span]:
    """The spans a question names, in days, months and years of `zone`; a month without a year stands for each such month from
    `first` to `last`.

    `day_first` says whether 3/4/2024 is the third of April; with None it is read either way. All times are aware. At
    most MAX_SPANS, single days first, and of what has no year the newest. The cost grows with the question's length.
    """
    named: dict[_Named, None] = {}

    def read(match: re.Match[str]) -> str:
        dates = _numeric(match, day_first)
        named.update(dict.fromkeys(dates))
        return " " if dates else match[0]

    words = _WORD.findall(_NUMERIC.sub(read, question.lower()))
    named.update(dict.fromkeys(_in_words(words)))
    years = list(dict.fromkeys(int(word) for word in words if _is_year(word)))
    newest = min(_within(last, zone).year, LAST_YEAR)
    oldest = max(_within(first, zone).year, FIRST_YEAR, newest - MAX_YEARS + 1)
    meant = years or range(newest, oldest - 1, -1)
    spans = chain(
        _relative_spans(words, _within(now, zone)),
        (span for year, one in _dated(named, meant) for span in _day_span(year, one, zone)),
        (_months(year, one.month, zone) for year, one in _dated(named, meant)),
        (_span(_start(year, 1, zone), _start(year + 1, 1, zone), YEAR) for year in years if not named),
    )
    return list(islice(spans, MAX_SPANS))


def _within(moment: datetime, zone: tzinfo) -> datetime:
    """The moment in the zone; one at either end of time, which may have no place there, as it is."""
    return moment.astimezone(zone) if FIRST_YEAR <= moment.year <= LAST_YEAR else moment


def _numeric(match: re.Match[str], day_first: bool | None) -> list[_Named]:
    """Readings of 19.01.2024, 1/19/24, 2024-01-19, 1/2024, 2024-01 or "on 1/19"; none where it is no date.

    With points the day comes first in each language.
    """
    one, sign, two, three = match.groups()
    year, orders = "", list[tuple[str, str | None]]()  # of month and day
    if len(one) == 4 and len(two) <= 2:
        year, orders = one, [(two, three)]
    elif three is None and len(two) == 4:
        year, orders = two, [(one, None)]
    elif three is None and sign != "-" and _word_before(match) in _BEFORE_DAY:
        orders = [(two, one), (one, two)][: 1 if sign == "." else 2]
    elif three is not None and len(three) in ({4} if sign == "-" else {2, 4}):
        # As POSIX reads it.
        year = three if len(three) == 4 else f"{20 if int(three) < 69 else 19}{three}"
        orders = [(two, one), (one, two)]
    first = True if sign == "." else day_first
    if len(orders) == 2 and first is not None and max(int(one), int(two)) <= 12:
        orders = orders[:1] if first else orders[1:]
    return [
        _Named(int(month), int(day) if day else None, int(year) if year else None)
        for month, day in orders
        if (not year or _is_year(year)) and _day(int(year or LEAP_YEAR), int(month), int(day or 1))
    ]


def _word_before(match: re.Match[str]) -> str:
    """The short word that a number follows; "" where there is none."""
    start = match.start()
    words = match.string[max(0, start - _LONGEST_BEFORE - 2) : start].split()
    return words[-1] if words else ""


def _in_words(words: Sequence[str]) -> Iterator[_Named]:
    """The months among the words, each with the day and the year that stand beside it."""
    free = 0  # from here on no number is the day of a month before
    for place, word in enumerate(words):
        month = MONTHS.get(word)
        if month is None:
            continue
        free = max(free, place - 3)
        near = [spot for spot in range(free, min(place + 6, len(words))) if words[spot] not in _BETWEEN]
        before = [spot for spot in near if spot < place][-1:]
        after = [spot for spot in near if spot > place][:2]
        day = next((spot for spot in [*before, *after[:1]] if _is_day(words[spot])), place)
        beside = [*after[: 2 if day > place else 1], *before]
        year = next((spot for spot in beside if _is_year(words[spot])), place)
        alone = day == year == place and words[max(0, place - 1)] not in _BEFORE_MONTH
        free = max(place, day) + 1
        if not (alone and word in _AMBIGUOUS):
            yield _Named(
                month,
                int(words[day]) if day != place else None,
                int(words[year]) if year != place else None,
            )


def _is_day(word: str) -> bool:
    return word.isdecimal() and len(word) <= 2 and 1 <= int(word) <= 31


def _is_year(word: str) -> bool:
    return word.isdecimal() and len(word) == 4 and FIRST_YEAR <= int(word) <= LAST_YEAR


def _dated(named: Iterable[_Named], years: Iterable[int]) -> Iterator[tuple[int, _Named]]:
    """Each named month with its year, or else with each of the years."""
    named = list(named)
    yield from ((one.year, one) for one in named if one.year is not None)
    yield from ((year, one) for year in years for one in named if one.year is None)


def _day_span(year: int, named: _Named, zone: tzinfo) -> Iterator[Span]:
    middle = _day(year, named.month, named.day, zone) if named.day else None
    if middle:
        yield _span(middle - timedelta(days=1), middle + timedelta(days=2), EXACT)


def _day(year: int, month: int, day: int, zone: tzinfo = UTC) -> datetime | None:
    """None for a day that is in no calendar."""
    try:
        return datetime(year, month, day, tzinfo=zone)
    except ValueError:
        return None


def _relative_spans(words: Sequence[str], now: datetime) -> Iterator[Span]:
    if not FIRST_YEAR <= now.year <= LAST_YEAR:
        return
    zone = now.tzinfo or UTC
    today = datetime(now.year, now.month, now.day, tzinfo=zone)
    pairs = frozenset(pairwise(words))
    month, year = today.month, today.year
    two_back = ("before", "yesterday") in pairs  # the day before yesterday
    for named, back, length, strength in (
        ("today" in words, 0, 1, EXACT),
        (words.count("yesterday") > two_back, 1, 1, EXACT),
        (two_back, 2, 1, EXACT),
        (("this", "week") in pairs, today.weekday(), 7, WEEK),
        (("last", "week") in pairs, 7 + today.weekday(), 7, WEEK),
    ):
        if named:
            begin = today - timedelta(days=back)
            yield _span(begin, begin + timedelta(days=length), strength)
    if ("this", "month") in pairs:
        yield _months(year, month, zone)
    if ("last", "month") in pairs:
        yield _months(year, month - 1, zone)
    if ("last", "year") in pairs:
        yield _span(_start(year - 1, 1, zone), _start(year, 1, zone), YEAR)
    for number, name in enumerate(_WEEKDAYS):
        if ("last", name) in pairs or ("on", name) in pairs:
            begin = today - timedelta(days=(today.weekday() - number - 1) % 7 + 1)
            yield _span(begin, begin + timedelta(days=1), EXACT)
    yield from _ago_spans(words, today)


def _ago_spans(words: Sequence[str], today: datetime) -> Iterator[Span]:
    phrases = zip(words, words[1:], words[2:], strict=False)
    for number, unit in dict.fromkeys((number, unit) for number, unit, ago in phrases if ago == "ago"):
        length = _UNIT_DAYS.get(unit.removesuffix("s"))
        count = int(number) if number.isdecimal() and len(number) <= 3 else _NUMBERS.get(number)
        if length and count is not None and length * count < 365 * MAX_YEARS:
            slack = timedelta(days=length / 2)
            middle = today - timedelta(days=length * count)
            end = middle + slack + timedelta(days=1)
            yield _span(middle - slack, end, EXACT if length == 1 else WEEK)


def _months(year: int, month: int, zone: tzinfo) -> Span:
    return _span(_start(year, month, zone), _start(year, month + 1, zone), MONTH)


def _start(year: int, month: int, zone: tzinfo) -> datetime:
    """The first of a month; months beyond 1..12 run into the years beside."""
    carry, index = divmod(month - 1, 12)
    return datetime(year + carry, index + 1, 1, tzinfo=zone)


def _span(start: datetime, end: datetime, strength: float) -> Span:
    return Span(start.timestamp(), end.timestamp(), strength)
