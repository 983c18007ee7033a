"""Why something was found, in one short sentence of plain words."""

from datetime import UTC, datetime
from typing import Any

import pytest

from apps.accounts.models import User
from apps.core.ids import uuid7
from apps.search.causes import explained
from apps.search.documents import Causes, Document, Hit, Label, Source
from apps.search.selectors import search
from apps.search.services import documents_index

DAY = datetime(2023, 5, 12, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("causes", "sentence"),
    [
        (Causes(words=("dentist",)), "Has the word ‘dentist’."),
        (Causes(words=("dentist", "appointment")), "Has the words ‘dentist’ and ‘appointment’."),
        (
            Causes(occasion="ordering food", near="paella"),
            "Came up because of ‘paella’, which is near ‘ordering food’.",
        ),
        (
            Causes(meaning="shellfish", near="paella"),
            "Came up because of ‘paella’, which is near ‘shellfish’.",
        ),
        (Causes(near="paella"), "Came up because of ‘paella’."),
        (Causes(occasion="ordering food"), "Matters when it is about ‘ordering food’."),
        (Causes(date=DAY), "From 12 May 2023, the date you asked about."),
        (
            Causes(words=("exam",), date=DAY),
            "Has the word ‘exam’ and is from 12 May 2023, the date you asked about.",
        ),
        (Causes(link="Anna lives in Leeds"), "Linked to ‘Anna lives in Leeds’."),
        (Causes(link="x" * 400), f"Linked to ‘{'x' * 59}…’."),
    ],
)
def test_a_cause_makes_one_sentence(causes: Causes, sentence: str) -> None:
    assert hit("", causes=causes, parts={}).reason == sentence


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({}, ""),
        ({"meaning": 0.0}, ""),
        ({"meaning": 0.3, "keywords": 0.1, "tag:x": 1.0}, "Near in meaning."),
        ({"meaning": 0.3, "name": 0.4}, "By or about someone the question speaks of."),
    ],
)
def test_where_no_cause_is_named_the_largest_part_speaks(parts: dict[str, float], sentence: str) -> None:
    assert hit("", parts=parts).reason == sentence


def test_tags_and_categories_are_named() -> None:
    labels = (Label("tag", "food"), Label("category", "travel"))
    assert hit("", labels=labels).reason == "Tagged ‘food’ and in the category ‘travel’."
    assert (
        hit("", causes=Causes(words=("tea",)), labels=labels).reason
        == "Has the word ‘tea’, is tagged ‘food’ and is in the category ‘travel’."
    )


def documents(user: User, *texts: str, **fields: object) -> None:
    made = [
        Document(source=Source.MEMORY, source_id=uuid7(), text=text, happened_at=DAY, **fields)  # type: ignore[arg-type]
        for text in texts
    ]
    documents_index(user_id=user.pk, documents=made)


def best(user: User, query: str) -> Hit:
    return search(user.pk, query)[0]


@pytest.mark.django_db
def test_a_hit_names_the_words_of_the_question_that_it_has_in_any_form(alice: User) -> None:
    documents(alice, "The dentist's appointments are on Mondays.", "The cat is called Mia.")
    hit = best(alice, "when is my appointment at the dentist")
    assert hit.causes.words == ("appointment", "dentist")
    assert hit.reason == "Has the words ‘appointment’ and ‘dentist’."
    others = search(alice.pk, "when is my appointment at the dentist")[1:]
    assert [hit.causes.words for hit in others] == [()]


@pytest.mark.django_db
def test_a_long_question_names_the_rarest_words(alice: User) -> None:
    documents(alice, "Anna cooks paella with saffron in a copper pan.", *["Anna cooks soup."] * 9)
    hit = best(alice, "Anna cooks paella with saffron in a copper pan")
    assert hit.causes.words == ("paella", "saffron", "copper", "pan")


@pytest.mark.django_db
def test_a_date_that_is_asked_about_is_a_cause(alice: User) -> None:
    documents(alice, "Went to the opera.")
    assert best(alice, "what was on 12 May 2023").reason == "From 12 May 2023, the date you asked about."


@pytest.mark.django_db
def test_a_word_of_a_label_alone_is_not_said_to_stand_in_the_text(alice: User) -> None:
    documents(alice, "Small and round.", labels=(Label("tag", "Quokka"),))
    hit = best(alice, "quokka")
    assert (hit.causes.words, hit.reason) == ((), "Tagged ‘Quokka’.")


def hit(text: str, **fields: Any) -> Hit:
    values: dict[str, Any] = {
        "source": Source.MEMORY,
        "source_id": uuid7(),
        "external_id": "",
        "passage_id": 1,
    }
    values |= {"score": 0.5, "conversation_id": None, "happened_at": DAY, "parts": {"meaning": 0.5}}
    return Hit(text=text, **values | fields)


@pytest.mark.parametrize(
    ("said", "text", "sentence"),
    [
        (
            "what should I cook tonight",
            "Keeps recipes in a tin.",
            "Came up because of ‘cook’, which is near ‘recipes’.",
        ),
        ("Are the recipes any good?", "Keeps a recipe in a tin.", "Has the word ‘recipes’."),
        ("zxqv", "Keeps a recipe in a tin.", "Near in meaning."),
        ("", "Keeps a recipe in a tin.", "Near in meaning."),
    ],
)
def test_what_was_found_by_vectors_names_the_words_that_are_near(
    said: str, text: str, sentence: str
) -> None:
    (found,) = explained(said, [hit(text)])
    assert found.reason == sentence


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            "which restaurant do you like",
            "Came up because of ‘restaurant’, which is near ‘choosing a restaurant’.",
        ),
        ("zxqv", "Matters when it is about ‘choosing a restaurant’."),
    ],
)
def test_an_occasion_names_the_word_that_is_near_it(said: str, sentence: str) -> None:
    given = hit("Allergic to shellfish.", causes=Causes(occasion="choosing a restaurant"))
    (found,) = explained(said, [given])
    assert found.reason == sentence


def test_what_is_known_of_a_hit_stays() -> None:
    known = [hit("Has a cat.", causes=Causes(words=("cat",))), hit("Cat.", labels=(Label("tag", "x"),))]
    assert explained("cat and dog", known) == known
