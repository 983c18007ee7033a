"""Dates in questions."""

from datetime import UTC, datetime

import pytest

from apps.search.language.dates import named_dates

NOW = datetime(2026, 11, 21, 10, 30, tzinfo=UTC)
FIRST = datetime(2024, 2, 1, tzinfo=UTC)


def best(question: str, moment: datetime) -> float:
    """How much a question's dates say for a moment."""
    spans = named_dates(question, now=NOW, first=FIRST, last=NOW)
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
        ("what did I say today", (2026, 11, 21), (2026, 11, 20)),
        ("what was last week", (2026, 11, 10), (2026, 11, 17)),
        ("what was this week", (2026, 11, 17), (2026, 11, 10)),
        ("what was last month", (2026, 10, 5), (2026, 11, 5)),
        ("what was last year", (2025, 7, 5), (2026, 7, 5)),
        ("three days ago", (2026, 11, 18), (2026, 11, 14)),
        ("2 weeks ago", (2026, 11, 7), (2026, 10, 20)),
        ("what was on monday", (2026, 11, 16), (2026, 11, 17)),
        ("Was haben wir im Mai gemacht?", (2025, 5, 5), (2025, 6, 5)),
    ],
)
def test_a_question_means_this_day_and_not_that(
    question: str, inside: tuple[int, int, int], outside: tuple[int, int, int]
) -> None:
    assert best(question, datetime(*inside, 12, tzinfo=UTC)) > best(
        question, datetime(*outside, 12, tzinfo=UTC)
    )


@pytest.mark.parametrize(
    "question", ["may I come in?", "They march on", "What is 42?", "", "31 February 2025 and 99 May"]
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
