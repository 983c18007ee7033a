"""The encoders that Izzy computes (`minilm`, `mpnet`), and the server that speaks Ollama for it in benchmarks."""

import io
import os
import zipfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import httpx
import numpy as np
import pytest

from apps.accounts.models import User
from apps.search import spaces
from apps.search.backends import Space
from apps.search.documents import Scope
from apps.search.embedders import own, transformer
from apps.search.embedders.base import EmbedderDown, EmbedderMissing, Matrix
from apps.search.embedders.deadline import ANSWER_SECONDS
from apps.search.embedders.engines import CALIBRATION, embedder_for
from apps.search.embedders.own import MINILM, OWN, OwnEmbedder, model, weights_files
from apps.search.embedders.transformer import BATCH_TOKENS, Transformer
from apps.search.filling import side_fill, side_waiting
from apps.search.health import check_embedder, connect_embedder
from apps.search.proactive.recall import recall
from apps.search.selectors import near_occasions, search
from benchmarks._ollama import Refused, embedded, serving
from benchmarks.encoder import MATCH_SHARE, NOISE_SHARE, cosines
from tests.benchmarking import benchmark
from tests.peers.ollama_server import OllamaPeer

from .conftest import save

needs_weights = pytest.mark.skipif(
    not weights_files(MINILM), reason="the encoder's weights are not installed"
)
needs_mpnet = pytest.mark.skipif(
    not weights_files("mpnet") and "CI" not in os.environ,
    reason="not installed: make extra NAME=mpnet",
)


def of_another_model() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as files:
        files.writestr("model.safetensors", b"")
        files.writestr("tokenizer.json", b"{}")
    return packed.getvalue()


class Lengths:
    """An encoder whose vectors tell how long a text is."""

    def embed(self, texts: Sequence[str]) -> Matrix:
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32).reshape(-1, 2)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        return [[ord(letter) for letter in text] for text in texts]

    def is_too_long(self, text: str) -> bool:
        return len(text) > 5


def answer(**body: Any) -> dict[str, Any]:
    return embedded({"model": "all-minilm", **body}, cast("Transformer", Lengths()))


def test_one_text_and_many_are_answered_in_order() -> None:
    assert answer(input="four")["embeddings"] == [[4, 1]]
    assert answer(input=["a", "", "abc"])["embeddings"] == [[1, 1], [0, 1], [3, 1]]
    assert answer(input=[])["embeddings"] == []
    assert answer(input=["too long a text"], truncate=True)["prompt_eval_count"] == 15


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"model": "nomic-embed-text", "input": "a"}, 404, "try pulling it first"),
        ({"input": 3}, 400, "invalid input type"),
        ({"input": ["a", 3]}, 400, "invalid input type"),
        ({"input": ["far too long"], "truncate": False}, 400, "exceeds the context length"),
    ],
)
def test_what_ollama_refuses_is_refused(body: dict[str, Any], status: int, message: str) -> None:
    with pytest.raises(Refused, match=message) as refused:
        answer(**body)
    assert refused.value.status == status


def test_texts_are_computed_together_the_short_ones_first() -> None:
    tokens = [np.zeros(length, dtype=np.int64) for length in (3, 5, 3, BATCH_TOKENS, 5, 3)]
    assert list(transformer.together(tokens)) == [[0, 2, 5, 1, 4], [3]]
    many = [np.zeros(BATCH_TOKENS // 2, dtype=np.int64)] * 5
    assert [len(batch) for batch in transformer.together(many)] == [2, 2, 1]


def test_weights_that_are_missing_or_damaged_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    monkeypatch.setattr(own, "weights_files", lambda _: [])
    for made in (own._loaded.__wrapped__, OwnEmbedder):
        for name, command in ((MINILM, "make setup"), ("mpnet", "make extra NAME=mpnet")):
            with pytest.raises(EmbedderMissing, match=command):
                made(name)
    damaged = tmp_path / "model.zip"
    monkeypatch.setattr(own, "weights_files", lambda _: [damaged])
    for content in (b"PK, but no more", of_another_model()):
        damaged.write_bytes(content)
        with pytest.raises(EmbedderDown, match="cannot be read"):
            own._loaded.__wrapped__(MINILM)
    assert [file.name for file in tmp_path.iterdir()] == ["model.zip"]


@needs_weights
def test_weights_that_come_in_parts_are_read_as_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (whole,) = weights_files(MINILM)
    content = whole.read_bytes()
    cuts = [0, 1000, len(content) // 2, len(content) - 20, len(content)]
    parts = [tmp_path / str(number) for number in range(len(cuts) - 1)]
    for part, (start, end) in zip(parts, pairwise(cuts), strict=True):
        part.write_bytes(content[start:end])
    monkeypatch.setattr("sys.prefix", str(tmp_path / "absent"))
    monkeypatch.setattr(own, "weights_files", lambda _: parts)
    texts = ["The weather is lovely today.", "He drove to the stadium."]
    read = own._loaded.__wrapped__(MINILM)
    assert np.allclose(read.embed(texts), model(MINILM).embed(texts), atol=1e-6)
    parts[1].write_bytes(content[2000 : 1000 + len(content) // 2])  # as long, but another
    with pytest.raises(EmbedderDown, match="cannot be read"):
        own._loaded.__wrapped__(MINILM)


def test_a_package_of_which_a_file_is_missing_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    for part in OWN["mpnet"].parts[:4]:
        (tmp_path / part).parent.mkdir(parents=True)
        (tmp_path / part).touch()
    (tmp_path / OWN["mpnet"].parts[4]).parent.mkdir(parents=True)
    assert weights_files("mpnet") == []


def test_many_documents_have_the_time_that_computing_them_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[float] = []

    def answered(seconds: float, name: str, ask: object) -> Matrix:
        asked.append(seconds / ANSWER_SECONDS)
        return np.zeros((1, 3), dtype=np.float32)

    monkeypatch.setattr(spaces, "answered_within", answered)
    monkeypatch.setattr(spaces, "embedder_asked", lambda name: None)
    texts = ["a note"] * 40
    for name in (MINILM, "ollama:nomic-embed-text"):
        for use in (spaces.Use.DOCUMENT, spaces.Use.MESSAGE):
            spaces._asked(Space(1, name, 3, 0.1, 0.9), texts, use)
    assert asked == [4.0, 1.0, 1.0, 1.0]


def test_the_bundled_vectors_have_a_calibration_and_a_speed() -> None:
    sections = {part["title"]: part["rows"] for part in benchmark("encoder")["sections"]}
    (row,) = sections["Calibration"]
    assert row["noise"] == pytest.approx(row["noise in use"], abs=0.03)
    assert row["match"] == pytest.approx(row["match in use"], abs=0.03)
    assert sections["Speed"][0]["texts per second"] > 100


@needs_weights
def test_the_encoder_gives_the_cosines_of_its_model_card() -> None:
    sentences = ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    encoder = embedder_for("minilm")
    vectors = encoder.embed_queries(sentences)
    expected = [[1.0, 0.6660, 0.1046], [0.6660, 1.0, 0.1411], [0.1046, 0.1411, 1.0]]
    assert np.allclose(vectors @ vectors.T, expected, atol=2e-4)
    # Alone and beside longer ones a text has the same vector.
    alone = np.concatenate([encoder.embed_queries([sentence]) for sentence in sentences])
    assert np.allclose(vectors, alone, atol=1e-5)
    assert model(MINILM).is_too_long("word " * 300)
    assert not model(MINILM).is_too_long("word " * 200)


@needs_mpnet
def test_the_larger_one_gives_the_cosines_that_sentence_transformers_does() -> None:
    """Computed by version 6.2.0 with all-mpnet-base-v2; ours approximates one function as Ollama does."""
    texts = [
        "choosing a restaurant for dinner tonight",
        "I am allergic to shellfish",
        "My sister's name is Ann",
        "Prawns make my throat swell, so we eat where they cook nothing from the sea",
    ]
    encoder = embedder_for("mpnet")
    vectors = encoder.embed_queries(texts)
    expected = [
        [1.0, 0.0547, 0.1080, 0.1846],
        [0.0547, 1.0, 0.0570, 0.5784],
        [0.1080, 0.0570, 1.0, 0.1314],
        [0.1846, 0.5784, 0.1314, 1.0],
    ]
    assert np.allclose(vectors @ vectors.T, expected, atol=2e-3)
    alone = np.concatenate([encoder.embed_queries([text]) for text in texts])
    assert np.allclose(vectors, alone, atol=1e-5)
    towers = [encoder.embed_messages(texts[:1]), encoder.embed_documents(texts[1:3])]
    allergy, sister = (towers[0] @ towers[1].T)[0]
    assert allergy > 0.1 + max(sister, vectors[0] @ vectors[1])


@needs_weights
@pytest.mark.parametrize("kept", [True, False])
def test_processes_share_its_weights_where_they_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, kept: bool
) -> None:
    folder = tmp_path if kept else tmp_path / "absent"
    monkeypatch.setattr(own, "kept_file", lambda name: folder / name)
    first = own._loaded.__wrapped__(MINILM)
    files = list(tmp_path.iterdir())
    assert len(files) == kept
    second = own._loaded.__wrapped__(MINILM)
    for one in (first, second):
        words = one.weights[transformer.WORDS]
        assert isinstance(words.base, np.memmap) == kept
        assert not kept or not words.flags.writeable
    texts = ["The weather is lovely today."]
    assert np.array_equal(first.embed(texts), second.embed(texts))
    assert np.allclose(first.embed(texts), model(MINILM).embed(texts), atol=1e-6)


@needs_weights
@pytest.mark.usefixtures("minilm")
def test_it_searches_beside_the_bundled_vectors_without_a_server(
    alice: User,
) -> None:
    save(alice, "Peanuts make Ada ill.", "The car is in the garage.", "Ada plays the cello.")
    assert side_fill("minilm") == 3
    best = search(alice.pk, "Which foods must be left out for her?")[0]
    assert best.text == "Peanuts make Ada ill."
    assert best.parts["encoder"] > 0
    assert check_embedder().ok
    assert connect_embedder().message == "The embedder minilm answers with 384 dimensions."


ENGLISH = ("Ada was given a cello by her aunt.", "The car is in the garage of the house.")
GERMAN = ("Ada hat das Cello von der Tante bekommen.", "Das Auto steht in der Garage.")


@pytest.mark.parametrize(
    ("notes", "question", "asked"),
    [
        (ENGLISH, "Who gave her the cello?", True),
        (ENGLISH, "Wer hat ihr das Cello geschenkt?", False),
        (GERMAN, "Wer hat ihr das Cello geschenkt?", False),
        (GERMAN, "Cello?", False),  # says nothing of its language: that of the notes does
        ((*ENGLISH, *GERMAN), "Who gave her the cello?", True),
        ((*ENGLISH, *GERMAN), "Wer hat ihr das Cello geschenkt?", False),
    ],
)
def test_an_encoder_for_english_alone_reads_nothing_else(
    alice: User,
    settings: Any,
    ollama: OllamaPeer,
    notes: tuple[str, ...],
    question: str,
    *,
    asked: bool,
) -> None:
    settings.IZZY_EMBEDDER = "ollama:all-minilm"
    save(alice, *notes)
    assert side_fill(settings.IZZY_EMBEDDER) == len(notes)
    assert side_waiting(settings.IZZY_EMBEDDER) == 0
    assert set(GERMAN).isdisjoint(ollama.texts)
    ollama.requests.clear()
    found = search(alice.pk, question)
    recall(alice.pk, [question], top_k=5, scope=Scope())
    near_occasions(alice.pk, GERMAN)
    assert bool(ollama.requests) == asked
    assert ("encoder" in found[0].parts) == asked
    settings.IZZY_EMBEDDER = "ollama:nomic-embed-text"  # of which nobody has said so
    side_fill(settings.IZZY_EMBEDDER)
    search(alice.pk, question)
    assert set(notes) <= {text.removeprefix("search_document: ") for text in ollama.texts}
    assert f"search_query: {question}" in ollama.texts


@needs_weights
def test_the_engine_reads_what_the_server_answers(settings: Any) -> None:
    with serving() as url:
        settings.OLLAMA_URL = url
        assert httpx.get(url).text == "Ollama is running"
        assert httpx.get(f"{url}/api/tags").json()["models"][0]["name"] == "all-minilm:latest"
        assert "version" in httpx.get(f"{url}/api/version").json()
        assert httpx.post(f"{url}/api/embed", content=b"{half").status_code == 400
        same, other = cosines(embedder_for("ollama:all-minilm"))
    noise, match = CALIBRATION["all-minilm"]
    assert np.percentile(other, NOISE_SHARE) == pytest.approx(noise, abs=0.03)
    assert np.percentile(same, MATCH_SHARE) == pytest.approx(match, abs=0.03)
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)
