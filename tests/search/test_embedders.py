"""The embedders: the bundled one, Ollama over the wire, and the optional ones' refusals."""

import builtins
from typing import Any

import numpy as np
import pytest

from apps.search.embedders import engines as registry
from apps.search.embedders import vocabulary
from apps.search.embedders.base import EmbedderDown, EmbedderMissing, QueryWeights, unit_rows
from apps.search.embedders.engines import (
    FastembedEmbedder,
    OllamaEmbedder,
    SentenceTransformersEmbedder,
    embedder_for,
)
from apps.search.embedders.static import StaticEmbedder
from apps.search.embedders.vocabulary import nearness
from tests.peers.ollama_server import OllamaPeer


def test_the_bundled_embedder_knows_what_is_alike() -> None:
    embedder = embedder_for("static")
    notes = embedder.embed_documents(["router and network configuration", "I'm allergic to shellfish"])
    near, far = notes @ embedder.embed_queries(["WiFi problem"])[0]
    assert near > 0.3 > far


def test_its_vectors_have_length_one_or_none() -> None:
    rows = StaticEmbedder().embed_documents(["The car is red", "", "🎉"])
    assert rows.shape == (3, 256)
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 0, 1], abs=1e-5)


def test_one_text_alone_gives_the_same_vector_as_among_others() -> None:
    embedder = StaticEmbedder()
    alone = embedder.embed_documents(["The car is red"])[0]
    among = embedder.embed_documents(["Something else entirely", "The car is red", ""])[1]
    assert alone == pytest.approx(among, abs=1e-6)


def test_capitals_do_not_matter() -> None:
    embedder = StaticEmbedder()
    one, two = embedder.embed_documents(["THE CAR IS RED", "the car is red"])
    assert one == pytest.approx(two)


def test_telling_words_pull_a_question_their_way() -> None:
    embedder = StaticEmbedder()
    dog = embedder.embed_documents(["dog"])[0]
    to_dog = QueryWeights({"dog": 1.0, "car": 0.1}, 1.0)
    to_car = QueryWeights({"dog": 0.1, "car": 1.0}, 1.0)
    assert dog @ embedder.embed_query("dog car", to_dog) > dog @ embedder.embed_query("dog car", to_car)


def test_without_its_package_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.search.embedders.static.find_spec", lambda name: None)
    with pytest.raises(EmbedderMissing, match="wordllama"):
        StaticEmbedder()


def test_nomic_gets_its_documented_prefixes(ollama: OllamaPeer) -> None:
    embedder = OllamaEmbedder("nomic-embed-text")
    embedder.embed_documents(["The car is red"])
    embedder.embed_queries(["Which colour?"])[0]
    assert ollama.texts == ["search_document: The car is red", "search_query: Which colour?"]
    assert ollama.requests[0]["model"] == "nomic-embed-text"
    assert embedder.dimension == 64


def test_mxbai_gets_its_prefix_for_questions_alone(ollama: OllamaPeer) -> None:
    embedder = OllamaEmbedder("mxbai-embed-large:335m")
    embedder.embed_documents(["The car is red"])
    embedder.embed_queries(["Which colour?"])[0]
    prefix = "Represent this sentence for searching relevant passages: "
    assert ollama.texts == ["The car is red", f"{prefix}Which colour?"]


def test_many_texts_go_in_batches_and_come_back_in_order(ollama: OllamaPeer) -> None:
    embedder = OllamaEmbedder("plain")
    texts = [f"text number {number}" for number in range(150)]
    rows = embedder.embed_documents(texts)
    assert [len(request["input"]) for request in ollama.requests] == [64, 64, 22]
    assert rows[149] == pytest.approx(embedder.embed_queries(["text number 149"])[0])
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(150), abs=1e-5)


def test_nothing_to_embed_asks_nobody(ollama: OllamaPeer) -> None:
    assert len(OllamaEmbedder("plain").embed_documents([])) == 0
    assert ollama.requests == []


@pytest.mark.parametrize(
    ("mode", "message"),
    [("broken", "500"), ("nonsense", "no embeddings"), ("short", "1 embeddings for 2 texts")],
)
def test_a_bad_answer_is_a_clear_error(ollama: OllamaPeer, mode: str, message: str) -> None:
    ollama.mode = mode
    with pytest.raises(EmbedderDown, match=message):
        OllamaEmbedder("plain").embed_documents(["x", "y"])


def test_texts_longer_than_the_context_are_sent_shorter(ollama: OllamaPeer) -> None:
    ollama.context = 60
    embedder = OllamaEmbedder("plain")
    rows = embedder.embed_documents(["red " * 200, "blue"])
    assert rows[0] == pytest.approx(embedder.embed_documents(["red"])[0])
    assert rows[1] == pytest.approx(embedder.embed_documents(["blue"])[0])
    ollama.context = 1
    with pytest.raises(EmbedderDown, match="400"):
        embedder.embed_documents(["red " * 200])


def test_a_missing_model_names_the_command_that_gets_it(ollama: OllamaPeer) -> None:
    with pytest.raises(EmbedderDown, match="ollama pull other-model"):
        OllamaEmbedder("other-model").embed_queries(["x"])[0]


def test_a_server_that_is_not_there_is_named(settings: Any) -> None:
    settings.OLLAMA_URL = "http://127.0.0.1:9"
    with pytest.raises(EmbedderDown, match=r"127\.0\.0\.1:9"):
        OllamaEmbedder("plain").embed_queries(["x"])[0]


@pytest.mark.parametrize(
    "name", ["fastembed:BAAI/bge-small-en-v1.5", "sentence-transformers:all-MiniLM-L6-v2"]
)
def test_an_optional_embedder_names_its_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(module: str, *args: Any, **kwargs: Any) -> Any:
        if module in {"fastembed", "sentence_transformers"}:
            raise ImportError(module)
        return real(module, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    extra = name.split(":")[0]
    with pytest.raises(EmbedderMissing, match=f"make extra NAME={extra}"):
        embedder_for(name).embed_queries(["x"])[0]


@pytest.mark.parametrize("name", ["", "nonsense", "ollama", "ollama:", "static:x"])
def test_an_unknown_embedder_lists_the_known_ones(name: str) -> None:
    with pytest.raises(EmbedderMissing, match="static or one of") as caught:
        embedder_for(name)
    assert caught.value.code == "unknown_embedder"


def test_there_is_one_embedder_of_a_name() -> None:
    assert embedder_for("static") is embedder_for("static")
    registry._make.cache_clear()
    assert embedder_for("ollama:plain") is embedder_for("ollama:plain")


class Engine:
    """Stands in for the packages whose models would have to be downloaded."""

    def passage_embed(self, texts: list[str]) -> Any:
        return ([3.0, 4.0] for _ in texts)

    def query_embed(self, texts: list[str]) -> Any:
        return ([0.0, 2.0] for _ in texts)

    def encode_document(self, texts: list[str]) -> Any:
        return [[3.0, 4.0] for _ in texts]

    def encode_query(self, texts: list[str]) -> Any:
        return [[0.0, 2.0] for _ in texts]


@pytest.mark.parametrize("make", [FastembedEmbedder, SentenceTransformersEmbedder])
def test_local_engines_give_unit_vectors(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = make("some-model")
    monkeypatch.setitem(embedder.__dict__, "_engine", Engine())
    assert embedder.embed_documents(["a", "b"]) == pytest.approx(np.array([[0.6, 0.8]] * 2))
    assert embedder.embed_queries(["a"])[0] == pytest.approx(np.array([0, 1]))
    assert embedder.dimension == 2


def test_numbers_that_are_none_become_zeros() -> None:
    rows = unit_rows(np.array([[np.nan, np.inf], [0.0, 0.0], [3.0, 4.0]]))
    assert rows.tolist() == [[0, 0], [0, 0], [pytest.approx(0.6), pytest.approx(0.8)]]


def test_words_are_as_near_when_their_vectors_were_kept_and_no_more_are_kept_than_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vocabulary, "_kept", {})
    monkeypatch.setattr(vocabulary, "KEPT_WORDS", 3)
    others = ["mother", "gratin", "tram", "wasp", "mother"]
    vectors = StaticEmbedder().embed_documents(["mum", *others])
    for _ in range(3):
        near = nearness(["mum"], others)
        np.testing.assert_allclose(near, vectors[:1] @ vectors[1:].T, atol=2e-3)
        assert len(vocabulary._kept) <= 3
    assert nearness(["mum", "tram"], ["tram"])[1, 0] == pytest.approx(1.0, abs=2e-3)
