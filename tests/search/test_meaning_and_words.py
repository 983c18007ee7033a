"""A search finds notes by meaning, by words, by beginnings of names."""

import pytest

from apps.accounts.models import User
from apps.search.selectors import search, similar

from .conftest import found, save

NOTES = (
    "router and network configuration",
    "I'm allergic to shellfish",
    "The user lives in Berlin and works as a nurse",
    "My dog Rex loves swimming in the lake",
    "Dentist appointment every six months",
    "Anna's birthday is on 3 May",
    "prefers tea over coffee in the morning",
    "The Python project uses Django and pytest",
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("WiFi problem", "router and network configuration"),
        ("what do you know about food?", "I'm allergic to shellfish"),
        ("Where do I live?", "The user lives in Berlin and works as a nurse"),
        ("pets", "My dog Rex loves swimming in the lake"),
        ("teeth", "Dentist appointment every six months"),
        ("hot drinks", "prefers tea over coffee in the morning"),
        ("When is Anna's birthday?", "Anna's birthday is on 3 May"),
    ],
)
def test_it_finds_the_note_that_is_meant(alice: User, question: str, answer: str) -> None:
    save(alice, *NOTES)
    assert found(alice, question)[0] == answer


def test_it_finds_other_forms_of_a_word(alice: User) -> None:
    save(alice, "We went swimming", "He bought two tickets", "The meeting was cancelled")
    assert found(alice, "ticket")[0] == "He bought two tickets"
    assert found(alice, "swims")[0] == "We went swimming"


def test_it_finds_a_name_by_its_beginning(alice: User) -> None:
    save(
        alice,
        "Quetzalcoatlus is what Bob calls his bike",
        "A bike shop opened in town",
        "Bob sold his bike",
    )
    assert found(alice, "Quetz")[0] == "Quetzalcoatlus is what Bob calls his bike"


def test_a_hyphenated_word_is_found_joined_and_apart(alice: User) -> None:
    save(alice, "The Wi-Fi password is under the router", "Password of the bank")
    assert found(alice, "wifi")[0] == "The Wi-Fi password is under the router"
    assert found(alice, "wi-fi")[0] == "The Wi-Fi password is under the router"


def test_a_long_note_is_one_hit_with_its_best_part(alice: User) -> None:
    filler = "The weather report went on and on about clouds. " * 120
    save(
        alice,
        f"{filler} The spare key lies under the blue flowerpot. {filler}",
        "A short note about cars",
    )
    hits = search(alice.pk, "Where is the spare key?")
    assert len(hits) == 2
    assert "blue flowerpot" in hits[0].text
    assert len(hits[0].text) < len(filler)


def test_a_hit_says_what_its_score_is_made_of(alice: User) -> None:
    save(alice, *NOTES)
    parts = search(alice.pk, "dog")[0].parts
    assert parts["keywords"] > 0
    assert parts["meaning"] > 0


def test_the_same_question_gives_the_same_order(alice: User) -> None:
    save(alice, *NOTES)
    assert found(alice, "morning in Berlin") == found(alice, "morning in Berlin")


def test_a_note_saved_again_is_found_by_its_new_text_alone(alice: User) -> None:
    (name,) = save(alice, "The car is red")
    save(alice, "The bicycle is green", source_id=name)
    assert found(alice, "car") == ["The bicycle is green"]
    assert search(alice.pk, "car")[0].parts.get("keywords", 0.0) == 0.0


def test_similar_notes_are_told_from_different_ones(alice: User) -> None:
    same, other = save(alice, "My dog is called Rex", "The tax return is due in July")
    scores = dict(similar(alice.pk, "My dog's name is Rex"))
    assert scores[same] > 0.85
    assert scores[other] < 0.5


def test_similar_needs_a_text(alice: User) -> None:
    save(alice, *NOTES)
    assert similar(alice.pk, "   ") == []
