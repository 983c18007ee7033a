"""Documents that say the very words, found through full text."""

from collections.abc import Iterator

import pytest

from apps.accounts.models import User
from apps.search.documents import Source
from apps.search.selectors import passages_saying

from .conftest import say

TEXTS = [
    "The boiler makes a strange noise at night, happiness is running away",
    "Die alten Häuser stehen am Fluß; Anna's E-Mail kam gestern",
    "Les élèves écoutaient l'histoire naturelle",
    "He tries lemon-trees and generalizations, version 2.10 of foo@bar.example",
    "猫が庭で寝ています",
]


def found(user: User, query: str) -> list[str]:
    return [said.text for said in passages_saying(user.pk, query, source=Source.CONVERSATION)]


def beginnings(text: str) -> Iterator[str]:
    """Queries of somebody who looks for a word of the text, letter by letter, from the third on."""
    for word in text.replace(",", " ").replace(";", " ").split():
        for end in range(min(3, len(word)), len(word) + 1):
            yield word[:end]


@pytest.mark.parametrize("text", TEXTS)
def test_a_telling_word_is_found_from_its_third_letter_on(alice: User, text: str) -> None:
    say(alice, ("user", text), ("assistant", "Quick brown foxes"))
    function_words = {"the", "a", "at", "is", "die", "am", "les", "l'h", "he", "and", "of"}
    typed = [query for query in beginnings(text) if query.lower() not in function_words]
    assert len(typed) > 5
    assert [query for query in typed if found(alice, query) != [text]] == []


@pytest.mark.parametrize(
    "query",
    [
        "strange noise", "STRANGE  Noise", "makes a strange n", "noise at ni", "noise at", "noise a", "the boiler",
        "happiness is run", "boiler makes a strange noise at night, hap",
    ],
)  # fmt: skip
def test_several_words_are_found_as_they_were_said_as_far_as_they_were_typed(
    alice: User, query: str
) -> None:
    say(alice, ("user", TEXTS[0]), ("user", "A noise that is strange; a boiler at night"))
    assert found(alice, query)[0] == TEXTS[0] or TEXTS[0] in found(alice, query)


@pytest.mark.parametrize(
    ("said", "query"),
    [
        ("We met at the Cafe\u0301 Luna", "café luna"),
        ("The İstanbul trip", "istanbul trip"),
        ("ｆｕｌｌ width", "full width"),
    ],
)
def test_letters_that_are_written_otherwise_are_the_same(alice: User, said: str, query: str) -> None:
    say(alice, ("user", said))
    assert found(alice, query) == [said]


@pytest.mark.parametrize(
    "query", ["", "  ", "noise strange", "submarine", "the", "?!", "%", '"', "boiler OR night", "nois*"]
)
def test_what_was_not_said_so_is_not_found(alice: User, query: str) -> None:
    say(alice, ("user", TEXTS[0]))
    assert found(alice, query) == []


def test_the_newest_comes_first_and_nobody_elses(alice: User, bob: User) -> None:
    say(alice, ("user", "A kite in May"), ("user", "The kite in June"))
    say(bob, ("user", "Bob's kite"))
    assert found(alice, "kite") == ["The kite in June", "A kite in May"]
    assert found(bob, "kite") == ["Bob's kite"]
