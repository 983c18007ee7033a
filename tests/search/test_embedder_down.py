"""An embedder that is down costs meaning for a while, never a note and never an error."""

from typing import Any

import pytest

from apps.accounts.models import User
from apps.search import spaces
from apps.search.embedders.base import EmbedderDown
from apps.search.health import check_embedder, connect_embedder
from apps.search.models import EmbeddingSpace, Passage
from apps.search.selectors import search, similar
from apps.search.spaces import passages_embed_pending, sweep_pending
from tests.peers.ollama_server import OllamaPeer

from .conftest import found, save


def test_a_saved_note_is_found_by_words_before_it_has_a_vector(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car is red", "The bicycle is blue")
    assert ollama.requests == []
    assert Passage.objects.filter(pending=True).count() == 2
    assert found(alice, "bicycle")[0] == "The bicycle is blue"


def test_the_sweep_catches_up(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car is red", "The bicycle is blue")
    assert found(alice, "car")[0] == "The car is red"
    sweep_pending()
    assert not Passage.objects.filter(pending=True).exists()
    assert EmbeddingSpace.objects.get().dimension == 64
    hit = search(alice.pk, "red car")[0]
    assert hit.text == "The car is red"
    assert hit.parts["meaning"] > 0
    assert similar(alice.pk, "The car is red")[0][1] > 0.9


def test_saving_and_searching_go_on_while_it_is_down(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car is red")
    sweep_pending()
    ollama.mode = "broken"
    save(alice, "The car needs new tyres")
    assert set(found(alice, "car")) == {"The car is red", "The car needs new tyres"}
    assert "meaning" not in search(alice.pk, "car")[0].parts
    sweep_pending()
    assert Passage.objects.filter(pending=True).count() == 1
    spaces.note_up()
    ollama.mode = "well"
    sweep_pending()
    assert not Passage.objects.filter(pending=True).exists()
    assert "meaning" in search(alice.pk, "new tyres for the car")[0].parts


def test_while_it_is_down_searches_do_not_wait_for_it_one_by_one(
    alice: User, ollama: OllamaPeer
) -> None:
    save(alice, "The car is red")
    sweep_pending()
    ollama.mode = "broken"
    asked = len(ollama.requests)
    for number in range(5):
        found(alice, f"car {number}")
    assert len(ollama.requests) == asked + 1


def test_a_question_asked_again_is_not_embedded_again(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car is red")
    sweep_pending()
    found(alice, "which car")
    asked = len(ollama.requests)
    found(alice, "which car")
    assert len(ollama.requests) == asked


def test_the_failure_is_told_to_who_asks_for_it(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car is red")
    ollama.mode = "broken"
    with pytest.raises(EmbedderDown):
        passages_embed_pending()


def test_a_model_that_changed_its_dimension_is_refused(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car is red")
    sweep_pending()
    ollama.dimension = 32
    save(alice, "The bicycle is blue")
    with pytest.raises(EmbedderDown, match="reindex"):
        passages_embed_pending()
    assert found(alice, "bicycle")[0] == "The bicycle is blue"


def test_without_any_embedder_words_still_find(alice: User, settings: Any) -> None:
    settings.IZZY_EMBEDDER = "nonsense"
    save(alice, "The car is red", "The bicycle is blue")
    assert found(alice, "bicycle")[0] == "The bicycle is blue"
    assert similar(alice.pk, "bicycle") == []
    sweep_pending()
    assert Passage.objects.filter(pending=True).count() == 2


def test_health_says_what_is_missing(alice: User, ollama: OllamaPeer, settings: Any) -> None:
    assert check_embedder().ok
    save(alice, "The car is red")
    waiting = check_embedder()
    assert not waiting.ok
    assert "1 passages are found by keywords alone" in waiting.message
    sweep_pending()
    assert check_embedder().ok
    settings.IZZY_EMBEDDER = "static"
    assert check_embedder().hint == "Run: manage.py reindex"
    settings.IZZY_EMBEDDER = "nonsense"
    assert "must be static or one of" in check_embedder().message


def test_the_button_of_the_instance_page_asks_the_embedder(ollama: OllamaPeer) -> None:
    assert (
        connect_embedder().message == "The embedder ollama:nomic-embed-text answers with 64 dimensions."
    )
    ollama.mode = "broken"
    assert not connect_embedder().ok
