"""The documented keyword score, to the digit."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import User
from apps.core.errors import IzzyError
from apps.memory.models import Memory
from apps.memory.notes.changes import cycle_advance, memory_archive, memory_delete, memory_update
from apps.memory.notes.undoing import memory_undo
from apps.memory.recall.keywords import memory_matching, memory_recall, memory_relevant
from tests.memory.conftest import MakeNote

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY_OLD = NOW - timedelta(hours=24)
SHELLFISH = "User is allergic to shellfish"


def accessed(note: Memory, hours_ago: float) -> Memory:
    Memory.objects.unscoped().filter(pk=note.pk).update(last_accessed=NOW - timedelta(hours=hours_ago))
    return note


def scores(user: User, *keywords: str, **options: Any) -> dict[str, float]:
    found = memory_relevant(user.pk, keywords, now=NOW, **options)
    return {item.note.content: item.score for item in found}


def only_score(user: User, *keywords: str) -> float:
    (score,) = scores(user, *keywords).values()
    return score


@pytest.mark.parametrize(
    ("keywords", "score"),
    [
        ((), 0.9),
        (("jazz",), 0.9),
        (("food",), 1.2),
        (("shellfish",), 1.1),
        (("allerg",), 1.4),
        (("food", "allerg"), 1.7),
        (("food", "allerg", "shellfish", "jazz"), 1.9),
        (("food", "food", "FOOD", " food "), 1.2),
        (("health", "food", "allergy"), 1.8),
    ],
)
def test_each_keyword_adds_three_tenths_for_a_tag_and_two_for_the_content(
    alice: User, note: MakeNote, keywords: tuple[str, ...], score: float
) -> None:
    accessed(note(alice, SHELLFISH, tags=["health", "allergy", "food"]), 24)
    assert only_score(alice, *keywords) == pytest.approx(score, abs=1e-7)


def test_a_keyword_in_two_tags_or_twice_in_the_content_counts_once(alice: User, note: MakeNote) -> None:
    accessed(note(alice, "Thai food, Greek food, fast food.", tags=["food", "seafood"]), 24)
    assert only_score(alice, "food") == pytest.approx(0.9 + 0.3 + 0.2, abs=1e-7)


@pytest.mark.parametrize(
    ("hours", "boost"),
    [(0, 0.2), (6, 0.15), (12, 0.1), (18, 0.05), (23, 0.2 / 24), (24, 0), (25, 0), (1000, 0), (-5, 0.2)],
)
def test_recency_adds_up_to_two_tenths_over_a_day(
    alice: User, note: MakeNote, hours: float, boost: float
) -> None:
    accessed(note(alice, SHELLFISH), hours)
    assert only_score(alice) == pytest.approx(0.9 + boost, abs=1e-7)


def test_a_note_never_read_counts_as_read_when_it_was_made(alice: User, note: MakeNote) -> None:
    made = note(alice, SHELLFISH)
    Memory.objects.unscoped().filter(pk=made.pk).update(created_at=NOW - timedelta(hours=12))
    assert only_score(alice) == pytest.approx(1.0, abs=1e-7)


def test_the_priority_is_that_of_now(alice: User, note: MakeNote) -> None:
    accessed(note(alice, "short", tier="short_term"), 24)
    accessed(note(alice, "long", tier="long_term"), 24)
    for _ in range(20):
        cycle_advance(user_id=alice.pk)
    assert scores(alice) == pytest.approx({"short": 0.2, "long": 0.8}, abs=1e-7)


def test_below_a_twentieth_a_note_is_left_out_whatever_matches(alice: User, note: MakeNote) -> None:
    accessed(note(alice, "at the floor", priority=0.05, decay_rate=0.0, tags=["x"]), 24)
    accessed(note(alice, "below it", priority=0.049, tags=["x"]), 24)
    assert scores(alice, "x", "below") == pytest.approx({"at the floor": 0.35}, abs=1e-7)


def test_the_highest_scores_come_first_and_no_more_than_asked(alice: User, note: MakeNote) -> None:
    for number in range(8):
        accessed(note(alice, f"note {number}", priority=0.1 + number / 10), 24)
    accessed(note(alice, "tagged", priority=0.6, tags=["wanted"]), 24)
    assert list(scores(alice, "wanted")) == ["tagged", "note 7", "note 6", "note 5", "note 4"]
    assert list(scores(alice, "wanted", limit=2)) == ["tagged", "note 7"]
    assert scores(alice, "wanted", limit=0) == {}


@pytest.mark.parametrize(
    ("keyword", "content", "tag"),
    [
        ("STRASSE", "Sie wohnt in der Hauptstraße.", "Straße"),
        ("straße", "HAUPTSTRASSE 5", "HAUPTSTRASSE"),
        ("müller", "HERR MÜLLER", "MÜLLER"),
        ("Mu\u0308ller", "Herr Müller", "müller"),
        ("МОСКВА", "Он живёт в городе Москва.", "москва"),
        ("οδυσσευς", "ΟΔΥΣΣΕΥΣ", "Οδυσσευς"),
        ("istanbul", "İSTANBUL", "İstanbul"),
        ("ISPARTA", "ısparta", "Isparta"),
        ("ÇAĞ", "çağ", "Çağ"),
        ("寿司", "彼は寿司が好きです。", "寿司"),
        ("ｓｕｓｈｉ", "Sushi on Fridays", "SUSHI"),
        ("kelvin", "\u212aelvin", "\u212aELVIN"),
        ("100%", "100% sure", "100%"),
        ("a_b", "file a_b", "a_b"),
        ("c\\d", "c:\\c\\d", "c\\d"),
        ('"x"', 'says "X"', '"x"'),
        (",", "one, two", "a,b"),
        ("[", "[sic]", "[sic]"),
    ],
)
def test_case_does_not_matter_in_any_language(
    alice: User, note: MakeNote, keyword: str, content: str, tag: str
) -> None:
    accessed(note(alice, content, tags=["other", tag]), 24)
    (found,) = memory_relevant(alice.pk, [keyword], now=NOW)
    assert (found.tag_hits, found.content_hits) == (1, 1)
    assert found.score == pytest.approx(1.4, abs=1e-7)


@pytest.mark.parametrize(
    ("keyword", "content", "tags"),
    [
        ("a_b", "axb", ["axb"]),
        ("1%2", "102", ["1x2"]),
        ("cafe", "Café", ["café"]),
        (",", "nothing", ["a", "b"]),
        ("a\nb", "nothing", ["a", "b"]),
        ('", "', "nothing", ["a", "b"]),
        ("[", "nothing", ["a"]),
        ("u00e4", "ä", ["ä"]),
        ("e", "ä", ["ä"]),
        ("n", "\n.", ["ä\\"]),
        ("ab", "a b", ["a", "b"]),
    ],
)
def test_nothing_matches_that_is_not_contained(
    alice: User, note: MakeNote, keyword: str, content: str, tags: list[str]
) -> None:
    note(alice, content, tags=tags)
    (found,) = memory_relevant(alice.pk, [keyword], now=NOW)
    assert (found.tag_hits, found.content_hits) == (0, 0)


def test_what_a_note_says_now_is_compared_whoever_changed_it(alice: User, note: MakeNote) -> None:
    made = note(alice, "Hauptstraße 5", tags=["Adresse"])

    def hits(keyword: str) -> tuple[int, int]:
        (found,) = memory_relevant(alice.pk, [keyword])
        return found.tag_hits, found.content_hits

    memory_update(user_id=alice.pk, memory_id=made.pk, content="Gartenweg 7", tags=["Über"])
    assert (hits("strasse"), hits("adresse"), hits("gartenweg"), hits("über")) == (
        (0, 0),
        (0, 0),
        (0, 1),
        (1, 0),
    )
    memory_undo(user_id=alice.pk, memory_id=made.pk, version=1)
    assert (hits("strasse"), hits("adresse"), hits("gartenweg")) == ((0, 1), (1, 0), (0, 0))


def test_only_ones_own_active_and_valid_notes_are_scored(alice: User, bob: User, note: MakeNote) -> None:
    note(bob, "bob's", tags=["x"])
    gone, away = note(alice, "deleted", tags=["x"]), note(alice, "archived", tags=["x"])
    memory_delete(user_id=alice.pk, memory_id=gone.pk)
    memory_archive(user_id=alice.pk, memory_id=away.pk)
    note(alice, "pending", tags=["x"], status="pending")
    note(alice, "over", tags=["x"], valid_to=NOW)
    note(alice, "to come", tags=["x"], valid_from=NOW + timedelta(seconds=1))
    note(alice, "now", tags=["x"], valid_from=DAY_OLD, valid_to=NOW + timedelta(seconds=1))
    assert list(scores(alice, "x")) == ["now"]


@pytest.mark.parametrize(
    "keywords", ["food", ["x"] * 21, [3], [None], ["\ud800"], ["a\x00"], ["x" * 101]]
)
def test_wrong_keywords_are_refused(alice: User, keywords: Any) -> None:
    with pytest.raises(IzzyError):
        memory_relevant(alice.pk, keywords)


def test_matching_leaves_out_what_no_keyword_is_in(alice: User, note: MakeNote) -> None:
    note(alice, "User loves Thai food", tags=["cuisine"])
    note(alice, "User plays chess")
    assert [item.note.content for item in memory_matching(alice.pk, ["cuisine"])] == [
        "User loves Thai food"
    ]
    assert memory_matching(alice.pk, []) == []


def test_recall_orders_by_priority_not_by_score(alice: User, note: MakeNote) -> None:
    note(alice, "pasta last night", tier="short_term", tags=["food", "dinner"])
    note(alice, "loves Thai food", tags=["food"])
    note(alice, "plays chess", priority=1.0)
    keywords = ["food", "dinner", "pasta", "night"]
    recalled = [item.note.content for item in memory_recall(alice.pk, keywords)]
    assert recalled == ["loves Thai food", "pasta last night"]
    scored = [item.note.content for item in memory_relevant(alice.pk, keywords)]
    assert scored == ["pasta last night", "loves Thai food", "plays chess"]


def test_recall_can_be_limited_to_a_tier_and_to_tags(alice: User, note: MakeNote) -> None:
    note(alice, "food short", tier="short_term", tags=["Küche"])
    note(alice, "food long", tags=["home"])

    def recalled(keywords: list[str], **only: Any) -> list[str]:
        return [item.note.content for item in memory_recall(alice.pk, keywords, **only)]

    assert recalled(["food"], tier="short_term") == ["food short"]
    assert recalled(["food"], tags=["KÜCHE"]) == ["food short"]
    assert recalled(["food"], tags=["küche", "home"]) == ["food long", "food short"]
    assert recalled(["food"], tags=["kü"]) == []
    assert recalled([], tags=["home"]) == ["food long"]
    assert recalled([], tier="long_term", tags=["küche"]) == []


def test_scoring_is_one_statement_whatever_there_is(alice: User, note: MakeNote) -> None:
    counts = []
    for number in (1, 30):
        for place in range(number):
            note(alice, f"note {place}", tags=["x"])
        with CaptureQueriesContext(connection) as queries:
            memory_relevant(alice.pk, ["x", "note"])
        counts.append(len(queries))
    assert counts == [2, 2]
