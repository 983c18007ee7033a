"""The keyword sets that rules make of a question."""

import pytest

from apps.accounts.models import User
from apps.memory.recall.angles import MAX_SETS, completed, question_words, rule_angles
from apps.search.embedders import vocabulary
from tests.memory.conftest import MakeNote

pytestmark = pytest.mark.django_db(transaction=True)


EAT = "what does the user like to eat?"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("what does the user like to eat?", {"cuisine", "allergy", "dinner"}),
        ("where do I live?", {"home", "address", "city"}),
        ("Am I allowed to drive a vehicle?", {"licence", "car"}),
        ("who are my parents?", {"mother", "father"}),
        ("is my landlord difficult?", {"rent", "landlord"}),
        ("what do you know about me?", {"preference", "family", "work", "health"}),
    ],
)
def test_a_question_is_looked_at_from_its_topics_angles(
    alice: User, query: str, expected: set[str]
) -> None:
    angles = rule_angles(alice.pk, query)
    assert 3 <= len(angles) <= MAX_SETS
    assert expected <= {word for angle in angles for word in angle.words}


def test_the_owners_own_tags_near_the_question_are_an_angle(
    alice: User, bob: User, note: MakeNote
) -> None:
    note(alice, "a", tags=["Seafood", "taxes"])
    note(bob, "b", tags=["bakery"])
    words = {word for angle in rule_angles(alice.pk, EAT) for word in angle.words}
    assert "seafood" in words
    assert not {"taxes", "bakery"} & words


@pytest.mark.parametrize(
    "query", ["Was weißt du über Marta?", "寿司について", "…?!", "zxqv", "the of and", "a" * 5000]
)
def test_any_question_has_three_to_five_angles(alice: User, query: str) -> None:
    angles = rule_angles(alice.pk, query)
    assert 3 <= len(angles) <= MAX_SETS
    assert all(angle.words for angle in angles)


def test_a_name_is_kept_and_what_fills_up_weighs_less(alice: User) -> None:
    first, *fillers = rule_angles(alice.pk, "tell me about Marta")
    assert (first.words, first.weight) == (("marta",), 1.0)
    assert all(filler.weight < 1 and "marta" in filler.words for filler in fillers)


def test_sets_are_not_repeated_nor_more_than_five() -> None:
    angles = completed(
        [["Food", "meal"], ["meal", "food"], [], *([word] for word in "abcdefg")], "food?"
    )
    assert [angle.words for angle in angles] == [("Food", "meal"), ("a",), ("b",), ("c",), ("d",)]


def test_question_words_are_what_is_asked_about() -> None:
    assert question_words("Please tell me everything you know about my sister's wedding in Rome!") == [
        "sister",
        "wedding",
        "rome",
    ]


def test_without_the_bundled_vectors_the_words_themselves_still_lead_to_the_topic(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary, "static_embedder", lambda: None)
    words = {word for angle in rule_angles(alice.pk, EAT) for word in angle.words}
    assert {"cuisine", "allergy", "dinner"} <= words
    assert len(rule_angles(alice.pk, "zebra crossing")) == 3
