"""An encoder that is down, slow or wrong costs its part of the score for a while, never a note and never an error."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from apps.accounts.models import User
from apps.search import spaces
from apps.search.embedders import engines, static
from apps.search.embedders.base import EmbedderDown
from apps.search.filling import side_fill, vectors_fill
from apps.search.health import check_embedder, connect_embedder
from apps.search.models import EmbeddingSpace, Passage
from apps.search.selectors import likenesses, search, similar
from tests.peers.ollama_server import OllamaPeer

from .conftest import found, save

NOMIC = "ollama:nomic-embed-text"


def waiting() -> int:
    return Passage.objects.filter(side_vector=None).count()


def test_a_saved_note_is_found_by_meaning_before_the_encoder_has_seen_it(
    alice: User, ollama: OllamaPeer
) -> None:
    save(alice, "The car is red", "The bicycle is blue")
    assert ollama.requests == []
    assert waiting() == 2
    hit = search(alice.pk, "bicycle")[0]
    assert hit.text == "The bicycle is blue"
    assert hit.parts["meaning"] > 0


def test_the_sweep_catches_up(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car is red", "The bicycle is blue")
    assert found(alice, "car")[0] == "The car is red"
    vectors_fill()
    assert waiting() == 0
    assert EmbeddingSpace.objects.get(role="side").dimension == 64
    hit = search(alice.pk, "red car")[0]
    assert hit.text == "The car is red"
    assert hit.parts["encoder"] > 0
    assert similar(alice.pk, "The car is red")[0][1] > 0.9


def test_saving_and_searching_go_on_while_it_is_down(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car is red")
    vectors_fill()
    ollama.mode = "broken"
    save(alice, "The car needs new tyres")
    assert set(found(alice, "car")) == {"The car is red", "The car needs new tyres"}
    parts = search(alice.pk, "car")[0].parts
    assert "meaning" in parts
    assert "encoder" not in parts
    vectors_fill()
    assert waiting() == 1
    spaces.note_up()
    ollama.mode = "well"
    vectors_fill()
    assert waiting() == 0
    assert "encoder" in search(alice.pk, "new tyres for the car")[0].parts


def bodies() -> dict[str, bytes]:
    """Answers that are no vectors of 64 numbers for two texts."""
    vector = [0.5] * 64
    return {
        "no JSON": b"<html>a proxy's page</html>",
        "nothing": b"",
        "another object": b'{"error": "no"}',
        "a list": b"[1, 2]",
        "null": b'{"embeddings": null}',
        "words": json.dumps({"embeddings": [["a"], ["b"]]}).encode(),
        "NaN": json.dumps({"embeddings": [[float("nan")] * 64, vector]}).encode(),
        "infinity": json.dumps({"embeddings": [[1e300] * 64, vector]}).encode(),
        "too few": json.dumps({"embeddings": []}).encode(),
        "too many": json.dumps({"embeddings": [vector] * 3}).encode(),
        "ragged": json.dumps({"embeddings": [vector, vector[:-1]]}).encode(),
        "flat": json.dumps({"embeddings": vector}).encode(),
        "empty": json.dumps({"embeddings": [[], []]}).encode(),
        "of another dimension": json.dumps({"embeddings": [vector[:32]] * 2}).encode(),
        "of another dimension, one": json.dumps({"embeddings": [vector[:32]]}).encode(),
    }


@pytest.mark.parametrize("name", bodies())
def test_nonsense_is_never_stored_and_never_an_error(
    alice: User, ollama: OllamaPeer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    save(alice, "The car is red", "The bicycle is blue")
    vectors_fill()
    save(alice, "The boat is green", "The train is white")
    monkeypatch.setattr(ollama, "answer", lambda body: (200, bodies()[name]))
    vectors_fill()
    assert waiting() == 2
    spaces.note_up()
    assert "The boat is green" in found(alice, "boat")
    assert similar(alice.pk, "The boat is green")[0][1] > 0.9
    assert likenesses(["The boat is green", "The boat is green"])[0, 1] > 0.9
    with pytest.raises(EmbedderDown):
        side_fill(NOMIC)
    monkeypatch.undo()
    spaces.note_up()
    vectors_fill()
    assert waiting() == 0
    assert search(alice.pk, "green boat")[0].parts["encoder"] > 0


def test_one_text_that_it_refuses_holds_up_no_other(
    alice: User, ollama: OllamaPeer, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(alice, *(f"note number {number} about topic{number}" for number in range(70)), "The odd one")
    answer = ollama.answer

    def choosy(body: dict[str, Any]) -> tuple[int, bytes]:
        odd = any("odd" in text for text in body["input"])
        return (500, b'{"error":"unsupported value: NaN"}') if odd else answer(body)

    monkeypatch.setattr(ollama, "answer", choosy)
    vectors_fill()
    assert waiting() == 0
    spaces.note_up()
    assert found(alice, "the odd one")[0] == "The odd one"
    spaces.note_up()
    hit = search(alice.pk, "one that is seldom")[0]
    assert hit.parts["encoder"] > 0
    assert next(hit for hit in search(alice.pk, "topic3 one", top_k=80) if "odd" in hit.text)


def test_while_it_is_down_searches_do_not_wait_for_it_one_by_one(
    alice: User, ollama: OllamaPeer
) -> None:
    save(alice, "The car is red")
    vectors_fill()
    ollama.mode = "broken"
    asked = len(ollama.requests)
    for number in range(5):
        found(alice, f"car {number}")
        similar(alice.pk, f"car {number}")
    assert len(ollama.requests) == asked + 1


def test_a_question_asked_again_is_not_embedded_again(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car is red")
    vectors_fill()
    found(alice, "which car")
    asked = len(ollama.requests)
    found(alice, "which car")
    assert len(ollama.requests) == asked


def test_several_questions_go_to_it_together(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car is red")
    vectors_fill()
    asked = len(ollama.requests)
    space = spaces.side_space()
    one = spaces.side_vectors(space, ["which car", "which colour"], spaces.Use.QUERY)
    two = spaces.side_vectors(space, ["which colour", "whose", "which colour"], spaces.Use.QUERY)
    assert one is not None
    assert two is not None
    assert (one.shape, two.shape) == ((2, 64), (3, 64))
    assert (two[0] == one[1]).all()
    assert (two[0] == two[2]).all()
    assert [len(request["input"]) for request in ollama.requests[asked:]] == [2, 1]


def test_the_failure_is_told_to_who_asks_for_it(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car is red")
    ollama.mode = "broken"
    with pytest.raises(EmbedderDown):
        side_fill(NOMIC)


def test_a_model_that_changed_its_dimension_is_refused(alice: User, ollama: OllamaPeer) -> None:
    save(alice, "The car is red")
    vectors_fill()
    ollama.dimension = 32
    save(alice, "The bicycle is blue")
    with pytest.raises(EmbedderDown, match="reindex"):
        side_fill(NOMIC)
    spaces.note_up()
    assert found(alice, "bicycle")[0] == "The bicycle is blue"
    assert "reindex" in connect_embedder().hint


def test_under_an_unknown_name_the_bundled_vectors_serve(alice: User, settings: Any) -> None:
    settings.IZZY_EMBEDDER = "nonsense"
    save(alice, "The car is red", "The bicycle is blue")
    assert found(alice, "bicycle")[0] == "The bicycle is blue"
    assert similar(alice.pk, "The bicycle is blue")[0][1] > 0.9
    vectors_fill()
    assert waiting() == 2


@pytest.fixture
def unbundled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A platform that wordllama has no build for."""
    monkeypatch.setattr(static, "find_spec", lambda name: None)
    caches = (engines._make, engines.static_embedder)
    for each in caches:
        each.cache_clear()
    yield
    for each in caches:
        each.cache_clear()


@pytest.mark.usefixtures("unbundled")
def test_without_bundled_vectors_words_find_and_the_encoder_alone(
    alice: User, ollama: OllamaPeer, settings: Any
) -> None:
    save(alice, "The car is red", "The bicycle is blue", "A boat")
    assert Passage.objects.filter(vector=None).count() == 3
    assert found(alice, "bicycle")[0] == "The bicycle is blue"
    assert similar(alice.pk, "The car is red") == []
    assert "keywords stand in" in check_embedder().message
    vectors_fill()
    hit = search(alice.pk, "red car")[0]
    assert hit.text == "The car is red"
    assert hit.parts["encoder"] > 0
    assert "meaning" not in hit.parts
    assert similar(alice.pk, "The car is red")[0][1] > 0.9
    assert likenesses(["The car is red"] * 2)[0, 1] > 0.9
    settings.IZZY_EMBEDDER = "static"
    assert "keywords alone" in check_embedder().message
    assert found(alice, "red")[0] == "The car is red"


def test_health_says_what_is_missing(alice: User, ollama: OllamaPeer, settings: Any) -> None:
    assert check_embedder().ok
    save(alice, "The car is red")
    waits = check_embedder()
    assert waits.ok  # the bundled vectors stand in
    assert f"1 passages wait for their vectors of {NOMIC}, which is catching up" in waits.message
    ollama.mode = "broken"
    vectors_fill()
    fails = check_embedder()
    assert not fails.ok
    assert "did not answer a moment ago" in fails.message
    ollama.mode = "well"
    spaces.note_up()
    vectors_fill()
    assert "beside the bundled vectors" in check_embedder().message
    settings.IZZY_EMBEDDER = "ollama:plain"
    assert "1 passages wait" in check_embedder().message
    settings.IZZY_EMBEDDER = "static"
    assert check_embedder().ok
    settings.IZZY_EMBEDDER = "nonsense"
    assert "must be static or one of" in check_embedder().message


def test_the_button_of_the_instance_page_asks_the_embedder(ollama: OllamaPeer, db: None) -> None:
    assert connect_embedder().message == f"The embedder {NOMIC} answers with 64 dimensions."
    ollama.mode = "broken"
    assert not connect_embedder().ok
