"""An encoder is asked what the question says, not who is meant to have said it."""

import pytest

from apps.accounts.models import User
from apps.search.filling import vectors_fill
from apps.search.ranking.query import query_prepare
from apps.search.selectors import search
from tests.peers.ollama_server import OllamaPeer

from .conftest import found, save, say

QUERY = "search_query: "


@pytest.fixture
def asked(alice: User, ollama: OllamaPeer) -> OllamaPeer:
    """The server of an encoder that has seen a talk of Caroline and Jean, and a note of alice's."""
    say(alice, ("Caroline", "I adopted a kitten."), ("Jean", "How lovely!"), ("user", "Tell me more."))
    save(alice, "The user guide is in the drawer")
    vectors_fill()
    return ollama


@pytest.mark.parametrize(
    ("question", "sent"),
    [
        ("What did Caroline adopt?", "What did adopt?"),
        ("What is CAROLINE'S kitten called?", "What is kitten called?"),
        ("Did Jean’s sister and Caroline meet?", "Did sister and meet?"),
        ("Who is Melanie's friend?", "Who is Melanie's friend?"),
        ("What does the carolings' song mean?", "What does the carolings' song mean?"),
        ("What did carolnie and jeans sister adopt?", "What did and sister adopt?"),
        ("Who is Caroline?", "Who is Caroline?"),
        ("Caroline", "Caroline"),
        ("Where is the user guide?", "Where is the user guide?"),
    ],
)
def test_names_of_speakers_are_left_out(
    alice: User, asked: OllamaPeer, question: str, sent: str
) -> None:
    search(alice.pk, question)
    assert asked.texts[-1] == QUERY + sent


def test_others_speakers_are_no_names_of_ones_own(alice: User, bob: User, asked: OllamaPeer) -> None:
    save(bob, "Caroline is my boat")
    vectors_fill()
    assert found(bob, "Where does the Caroline lie?") == ["Caroline is my boat"]
    assert asked.texts[-1] == f"{QUERY}Where does the Caroline lie?"


def test_who_has_no_vectors_is_not_asked_about(bob: User, asked: OllamaPeer) -> None:
    save(bob, "The car is red")
    before = len(asked.requests)
    query_prepare(bob.pk, "Which car?")
    assert found(bob, "Which car?") == ["The car is red"]
    assert len(asked.requests) == before
