"""Search answers, whatever is asked or saved."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.accounts.models import User
from apps.core.ids import uuid7
from apps.search.documents import Scope
from apps.search.selectors import context, search, similar

from .conftest import found, save

QUERIES = (
    '"',
    "'",
    '" OR 1=1 --',
    "NEAR(a b, 3)",
    "car AND NOT (red)",
    "terms:car*",
    "^car",
    "car + {red}",
    "1x1xcar",
    "-",
    "?!…",
    "🎉🚗",
    "汽车",
    "سيارة",
    "café\u0301",
    "\u202ecar",
    "car\x00red",
    "\t\n car \r",
    "a" * 5_000,
    "%s %d {} \\",
)


@pytest.mark.parametrize("query", QUERIES)
def test_no_query_breaks_search(alice: User, query: str) -> None:
    save(alice, "The car is red", "das Auto ist rot")
    assert len(search(alice.pk, query)) <= 2
    assert context(alice.pk, query).tokens <= 500
    similar(alice.pk, query)


@pytest.mark.parametrize("query", ["", " ", "\n\t"])
def test_an_empty_query_finds_nothing(alice: User, query: str) -> None:
    save(alice, "The car is red")
    assert search(alice.pk, query) == []
    assert context(alice.pk, query).items == []


def test_a_huge_query_is_answered(alice: User) -> None:
    save(alice, "The car is red")
    assert found(alice, "car " + "word " * 2_000_000) == ["The car is red"]


def test_operators_in_a_query_are_words_like_others(alice: User) -> None:
    save(alice, "The band is called NEAR", "The car is red")
    assert found(alice, "NEAR")[0] == "The band is called NEAR"


@pytest.mark.parametrize(
    "text", ["🎉", "…", "的", "a", "\u202e", "x" * 30_000, "e\u0301" * 300, "\u0000"]
)
def test_any_text_can_be_saved_and_removed_from_view(alice: User, text: str) -> None:
    save(alice, text, "The car is red")
    assert "The car is red" in found(alice, "car")


def test_a_text_of_ten_megabytes_is_saved_in_parts(alice: User) -> None:
    save(
        alice,
        "Clouds drift over the hill. " * 40_000 + "The needle lies under the oak.",
        "The car is red",
    )
    assert "needle" in found(alice, "Where is the needle?")[0]


def test_fewer_than_one_result_is_none(alice: User) -> None:
    save(alice, "The car is red")
    assert search(alice.pk, "car", top_k=0) == []


def test_no_budget_gives_no_text(alice: User) -> None:
    save(alice, "The car is red")
    assert context(alice.pk, "car", budget_tokens=0).text == ""


def test_a_scope_that_allows_nothing_finds_nothing(alice: User) -> None:
    save(alice, "The car is red")
    assert search(alice.pk, "car", scope=Scope(only_ids=[])) == []
    assert search(alice.pk, "car", scope=Scope(only_ids=[uuid7()])) == []
    assert search(alice.pk, "car", scope=Scope(sources=frozenset())) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=80))
def test_any_query_of_any_letters_is_answered(alice: User, query: str) -> None:
    if not similar(alice.pk, "The car is red"):
        save(alice, "The car is red")
    assert len(search(alice.pk, query)) <= 1
