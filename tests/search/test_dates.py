"""Dates in questions."""

import sys
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from apps.accounts.models import Preferences, User
from apps.search.documents import Scope
from apps.search.selectors import search
from apps.search.text.dates import MAX_SPANS, named_dates

from .conftest import found, save, say

NOW = datetime(2026, 11, 21, 10, 30, tzinfo=UTC)
FIRST = datetime(2024, 2, 1, tzinfo=UTC)


def best(question: str, moment: datetime, day_first: bool | None = None) -> float:
    """How much a question's dates say for a moment."""
    spans = named_dates(question, now=NOW, first=FIRST, last=NOW, day_first=day_first)
    stamp = moment.timestamp()
    return max((span.strength for span in spans if span.start <= stamp < span.end), default=0.0)


@pytest.mark.parametrize(
    ("question", "inside", "outside"),
    [
        ("What happened on 23 May 2025?", (2025, 5, 23), (2025, 6, 23)),
        ("What happened on May 23rd, 2025?", (2025, 5, 23), (2024, 5, 23)),
        ("dinner in May", (2025, 5, 2), (2025, 4, 2)),
        ("dinner in march", (2025, 3, 2), (2025, 4, 2)),
        ("What did we do in 2025?", (2025, 1, 1), (2026, 1, 1)),
        ("meeting 2025-03-04", (2025, 3, 4), (2025, 4, 4)),
        ("the whole 2025-03", (2025, 3, 28), (2025, 4, 1)),
        ("what did I say yesterday", (2026, 11, 20), (2026, 11, 21)),
        ("what did I say the day before yesterday", (2026, 11, 19), (2026, 11, 20)),
        ("what did I say today", (2026, 11, 21), (2026, 11, 20)),
        ("what was last week", (2026, 11, 10), (2026, 11, 17)),
        ("what was this week", (2026, 11, 17), (2026, 11, 10)),
        ("what was last month", (2026, 10, 5), (2026, 11, 5)),
        ("what was last year", (2025, 7, 5), (2026, 7, 5)),
        ("three days ago", (2026, 11, 18), (2026, 11, 14)),
        ("2 weeks ago", (2026, 11, 7), (2026, 10, 20)),
        ("what was on monday", (2026, 11, 16), (2026, 11, 17)),
        ("Was haben wir im Mai gemacht?", (2025, 5, 5), (2025, 6, 5)),
        ("dentist on 19.01.2024?", (2024, 1, 19), (2024, 1, 9)),
        ("dentist on 1/19/2024", (2024, 1, 19), (2024, 1, 9)),
        ("dentist on 19/01/2024", (2024, 1, 19), (2024, 1, 9)),
        ("dentist on 2024-01-19T10:00", (2024, 1, 19), (2024, 1, 9)),
        ("dentist on 2024/1/19.", (2024, 1, 19), (2024, 1, 9)),
        ("Zahnarzt am 19.1.24", (2024, 1, 19), (2024, 1, 9)),
        ("dentist on 03.04.25", (2025, 4, 3), (2025, 3, 4)),
        ("dentist in 3/2025", (2025, 3, 28), (2025, 4, 1)),
        ("Zahnarzt im 03.2025", (2025, 3, 28), (2025, 4, 1)),
        ("dentist on 1/19", (2025, 1, 19), (2025, 1, 9)),
        ("Zahnarzt am 19.1.", (2025, 1, 19), (2025, 1, 9)),
        ("le 19/1 chez le dentiste", (2026, 1, 19), (2026, 1, 9)),
        ("from 01.05.2024-07.05.2024", (2024, 5, 7), (2024, 5, 14)),
        ("3 May 2024 and 5 June 2025", (2024, 5, 3), (2024, 5, 5)),
        ("3 May 2024 and 5 June 2025", (2025, 6, 5), (2025, 5, 3)),
        ("between August 11 and August 15 2025", (2025, 8, 11), (2024, 8, 11)),
        ("May 3 June 9 2025", (2025, 6, 9), (2025, 6, 3)),
    ],
)
def test_a_question_means_this_day_and_not_that(
    question: str, inside: tuple[int, int, int], outside: tuple[int, int, int]
) -> None:
    assert best(question, datetime(*inside, 12, tzinfo=UTC)) > best(
        question, datetime(*outside, 12, tzinfo=UTC)
    )


LOS_ANGELES, AUCKLAND = ZoneInfo("America/Los_Angeles"), ZoneInfo("Pacific/Auckland")
MONDAY_EVENING = datetime(2026, 11, 23, 20, tzinfo=LOS_ANGELES)
TUESDAY_MORNING = datetime(2026, 11, 24, 9, tzinfo=AUCKLAND)
NEW_YEARS_EVE = datetime(2026, 12, 31, 20, tzinfo=LOS_ANGELES)
NEW_YEARS_MORNING = datetime(2027, 1, 1, 9, tzinfo=AUCKLAND)
CLOCKS_PUT_BACK = datetime(2026, 11, 1, 20, tzinfo=LOS_ANGELES)


@pytest.mark.parametrize(
    ("question", "now", "inside", "outside"),
    [
        ("what did I say today", MONDAY_EVENING, (2026, 11, 23, 9), (2026, 11, 24, 1)),
        ("what did I say yesterday", MONDAY_EVENING, (2026, 11, 22, 9), (2026, 11, 23, 9)),
        ("what did I say yesterday", TUESDAY_MORNING, (2026, 11, 23, 15), (2026, 11, 24, 8)),
        ("what did I say today", TUESDAY_MORNING, (2026, 11, 24, 8), (2026, 11, 23, 15)),
        ("what did I say today", CLOCKS_PUT_BACK, (2026, 11, 1, 23, 30), (2026, 10, 31, 23, 30)),
        ("what was last monday", MONDAY_EVENING, (2026, 11, 16, 20), (2026, 11, 17, 1)),
        ("what was this week", MONDAY_EVENING, (2026, 11, 23, 1), (2026, 11, 22, 23)),
        ("two days ago", MONDAY_EVENING, (2026, 11, 21, 1), (2026, 11, 23, 1)),
        ("what was this month", NEW_YEARS_EVE, (2026, 12, 5, 20), (2027, 1, 1, 1)),
        ("what was last year", NEW_YEARS_EVE, (2025, 5, 5, 20), (2026, 5, 5, 20)),
        ("what was on 31 May 2026", MONDAY_EVENING, (2026, 6, 1, 23), (2026, 6, 2, 1)),
        ("in May 2026", MONDAY_EVENING, (2026, 5, 31, 20), (2026, 4, 30, 20)),
        ("in 2025", MONDAY_EVENING, (2025, 12, 31, 20), (2024, 12, 31, 20)),
        ("in January", NEW_YEARS_MORNING, (2027, 1, 1, 8), (2027, 2, 1, 8)),
    ],
)
def test_days_months_and_years_are_those_of_the_zone(
    question: str, now: datetime, inside: tuple[int, ...], outside: tuple[int, ...]
) -> None:
    assert now.tzinfo is not None
    spans = named_dates(question, now=now.astimezone(UTC), first=FIRST, last=now, zone=now.tzinfo)
    said, other = (datetime(*day, tzinfo=now.tzinfo).timestamp() for day in (inside, outside))  # type: ignore[misc,arg-type]
    assert any(span.start <= said < span.end for span in spans)
    assert not any(span.start <= other < span.end for span in spans)


@pytest.mark.parametrize(
    "question",
    [
        "may I come in?",
        "They march on",
        "What is 42?",
        "",
        "31 February 2025 and 99 May",
        "version 31.1.26.4 at 10.31.1.26",
        "May ² and 5/31/1",
        "who ate 1/31 of the cake, or 31/1",
        "open until 1.31 and 31.1 °C",
        "from 31-1 to 1-31",
        f"may {'1' * 5000}",
    ],
)
def test_words_that_only_look_like_dates_do_not_point_to_a_day(question: str) -> None:
    assert best(question, datetime(2026, 1, 31, tzinfo=UTC)) == 0


def test_the_days_beside_a_named_day_count_too() -> None:
    assert best("on 23 May 2025", datetime(2025, 5, 24, 12, tzinfo=UTC)) == 1.0


def test_december_ends_with_the_year() -> None:
    assert best("in December 2025", datetime(2025, 12, 31, 23, tzinfo=UTC)) > 0
    assert best("in December 2025", datetime(2026, 1, 1, tzinfo=UTC)) == 0


def test_absurd_numbers_do_no_harm() -> None:
    assert named_dates("999 years ago in 9999-99-99 or 1900 May", now=NOW, first=FIRST, last=NOW)


def test_an_ambiguous_day_is_read_as_the_language_has_it_and_else_both_ways() -> None:
    third_of_april, fourth_of_march = datetime(2025, 4, 3, tzinfo=UTC), datetime(2025, 3, 4, tzinfo=UTC)
    for question in ("on 3/4/2025", "on 03-04-2025", "on 3/4/25", "on 3/4"):
        assert (best(question, third_of_april), best(question, fourth_of_march)) == (1, 1)
        assert (best(question, third_of_april, True), best(question, fourth_of_march, True)) == (1, 0)
        assert (best(question, third_of_april, False), best(question, fourth_of_march, False)) == (0, 1)
    for question in ("on 03.04.2025", "on 3.4.25", "on 3.4."):  # with points the day is first everywhere
        assert (best(question, third_of_april, False), best(question, fourth_of_march, False)) == (1, 0)


def test_a_month_without_a_year_stands_for_the_newest_years(alice: User) -> None:
    spans = named_dates(
        "on 5 May", now=NOW, first=datetime(1, 1, 1, tzinfo=UTC), last=datetime(9999, 12, 31, tzinfo=UTC)
    )
    assert len(spans) == MAX_SPANS
    assert max(span.start for span in spans) == datetime(2099, 5, 4, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "piece", ["1999 jan 5 ", "jan 5 feb 6 1999 2000 ", "1/2/2003 ", "3 days ago ", "may the of "]
)
def test_the_cost_of_dates_grows_with_the_length_of_a_question(piece: str) -> None:
    few, many = calls(piece * 200), calls(piece * 400)
    assert many <= 2 * few + 100


def calls(question: str) -> int:
    """How many functions are called for the dates of a question; its spans are bounded."""
    count = 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(note)
    try:
        spans = named_dates(question, now=NOW, first=FIRST, last=NOW)
    finally:
        sys.setprofile(None)
    assert len(spans) <= MAX_SPANS
    return count


def test_a_question_with_many_dates_names_no_more_spans_than_are_looked_at() -> None:
    question = "".join(f"{year} " for year in range(1900, 2000)) + "".join(
        f"jan {day} " for day in range(1, 32)
    )
    assert len(named_dates(question, now=NOW, first=FIRST, last=NOW)) == MAX_SPANS


def test_a_numeric_date_finds_what_was_said_on_that_day(alice: User) -> None:
    for day in (3, 4, 5, 6):
        for month in (3, 4, 5, 6):
            say(
                alice,
                ("user", f"Lunch with team number {month}{day}"),
                start=datetime(2025, month, day, 12, tzinfo=UTC),
            )
    assert found(alice, "lunch with the team on 06/04/2025", top_k=1) in (
        ["Lunch with team number 46"],
        ["Lunch with team number 64"],
    )
    Preferences.objects.update_or_create(user=alice, defaults={"language": "de"})
    assert found(alice, "lunch with the team on 06/04/2025", top_k=1) == ["Lunch with team number 46"]
    Preferences.objects.filter(user=alice).update(language="en")
    assert found(alice, "lunch with the team on 06/04/2025", top_k=1) == ["Lunch with team number 64"]


def test_yesterday_is_the_users_and_so_is_the_day_that_the_reason_names(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text, day in (("noodle soup with Mina", 23), ("lentil salad with Theo", 22), ("a burger", 1)):
        save(
            alice,
            f"Lunch was {text}.",
            happened_at=datetime(2026, 11, day, 18, tzinfo=LOS_ANGELES).astimezone(UTC),
        )
    Preferences.objects.update_or_create(user=alice, defaults={"time_zone": "America/Los_Angeles"})
    monkeypatch.setattr(timezone, "now", lambda: MONDAY_EVENING.astimezone(UTC))
    hits = [search(alice.pk, f"What was lunch {day}?")[0] for day in ("yesterday", "today")]
    assert [hit.text for hit in hits] == [
        "Lunch was lentil salad with Theo.",
        "Lunch was noodle soup with Mina.",
    ]
    assert "is from 22 November 2026, the date you asked about" in hits[0].reason
    Preferences.objects.filter(user=alice).update(time_zone="Atlantis/Poseidonis")
    assert search(alice.pk, "What was lunch yesterday?")[0].text == "Lunch was lentil salad with Theo."


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "UTC", "Pacific/Auckland"])
def test_no_time_that_can_be_asked_for_breaks_a_question(alice: User, zone: str) -> None:
    save(alice, "The bicycle lock opens with 4711")
    Preferences.objects.update_or_create(user=alice, defaults={"time_zone": zone})
    for moment in (datetime.min, datetime.max):
        scope = Scope(as_of=moment.replace(tzinfo=UTC))
        search(alice.pk, "the bicycle lock this week last month last year 3 weeks ago", scope=scope)
