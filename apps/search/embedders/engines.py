"""The engines that IZZY_EMBEDDER can name, and the way from its name to an embedder."""

import json
import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from django.conf import settings

from apps.search.embedders.base import (
    Embedder,
    EmbedderDown,
    EmbedderMissing,
    EmbedderRefused,
    Matrix,
    answered_rows,
)
from apps.search.embedders.own import OWN, OwnEmbedder
from apps.search.embedders.static import StaticEmbedder
from apps.search.embedders.taught import taught

if TYPE_CHECKING:
    import httpx


class _Local:
    """Base of both: `kind` names the extra too, the methods are those of the library."""

    kind: str
    document_method: str
    query_method: str
    match = 0.9
    query_prefix = ""
    document_prefix = ""

    def __init__(self, model: str) -> None:
        self.name = f"{self.kind}:{model}"
        self.model = model
        self.dimension = 0

    def _load(self) -> Any:
        raise NotImplementedError

    @cached_property
    def _engine(self) -> Any:
        try:
            return self._load()
        except ImportError as error:
            needs = f"needs an optional part: run `make extra NAME={self.kind}`."
            raise EmbedderMissing(f"The embedder {self.name} {needs}") from error
        except Exception as error:
            raise EmbedderDown(f"The embedder {self.name} could not be loaded: {error}") from error

    def _rows(self, method: str, texts: Sequence[str]) -> Matrix:
        engine = self._engine
        try:
            answer = list(getattr(engine, method)(list(texts)))
        except Exception as error:
            raise EmbedderRefused(f"The embedder {self.name} failed: {error}") from error
        rows = answered_rows(answer, len(texts), f"The embedder {self.name}")
        self.dimension = rows.shape[1]
        return rows

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._rows(self.document_method, texts)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._rows(self.query_method, texts)

    embed_messages = embed_queries


class FastembedEmbedder(_Local):
    """`fastembed:MODEL`: ONNX models; the model is downloaded at first use."""

    kind = "fastembed"
    noise = 0.3
    document_method, query_method = "passage_embed", "query_embed"

    def _load(self) -> Any:
        from fastembed import TextEmbedding

        return TextEmbedding(model_name=self.model)


class SentenceTransformersEmbedder(_Local):
    """`sentence-transformers:PATH_OR_NAME`: a local folder, or a name that is downloaded at first use."""

    kind = "sentence-transformers"
    noise = 0.1
    document_method, query_method = "encode_document", "encode_query"

    def _load(self) -> Any:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(self.model)


PREFIXES = {
    "nomic-embed-text": ("search_query: ", "search_document: "),
    "mxbai-embed-large": ("Represent this sentence for searching relevant passages: ", ""),
}
"""Model -> the prefixes that its card asks for before a query and before a document."""
CALIBRATION = {
    "nomic-embed-text": (0.45, 0.9),
    "mxbai-embed-large": (0.4, 0.9),
    "all-minilm": (0.1, 0.85),
}
"""Model -> `noise` and `match`, as `manage.py benchmark encoder` measures them."""
ENGLISH_ALONE = frozenset([*OWN, "ollama:all-minilm"])
"""Encoders that make vectors of any text, but of other languages such as say little."""
BATCH = 64
QUERY_SECONDS = 30.0
"""Ollama may have to load the model first; nobody waits so long (`deadline.py`)."""
DOCUMENT_SECONDS = 120.0
CONNECT_SECONDS = 2.0
TOO_LONG = b"exceeds the context length"
SHORTENED, LEAST_CHARS = 0.75, 200
"""Ollama since 0.13.5 refuses texts that are longer than the model's context, whatever `truncate` says: they are then sent
shorter by a quarter, and again."""
MAX_BYTES = 64 * 1024 * 1024
"""Of an answer: 64 vectors of 4,096 numbers take 6 MB."""


class OllamaEmbedder:
    """`ollama:MODEL`, at OLLAMA_URL. `dimension` is 0 until the first answer."""

    def __init__(self, model: str) -> None:
        self.name = f"ollama:{model}"
        self.model = model
        base = model.split(":", 1)[0]
        self.query_prefix, self.document_prefix = PREFIXES.get(base, ("", ""))
        self.noise, self.match = CALIBRATION.get(base, (0.3, 0.9))
        self.dimension = 0

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        rows = [
            self._embed(
                [self.document_prefix + text for text in texts[start : start + BATCH]], DOCUMENT_SECONDS
            )
            for start in range(0, len(texts), BATCH)
        ]
        if len({row.shape[1] for row in rows}) > 1:
            raise EmbedderRefused("Ollama sent embeddings of different dimensions.")
        return np.concatenate(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        return self._embed([self.query_prefix + text for text in texts], QUERY_SECONDS)

    embed_messages = embed_queries

    @cached_property
    def _client(self) -> "httpx.Client":
        """One for the process, since making one takes 20 ms; each request has a connection of its own."""
        import httpx  # takes a fifth of a second: not at every start

        return httpx.Client(limits=httpx.Limits(max_keepalive_connections=0))

    def _embed(self, texts: list[str], seconds: float) -> Matrix:
        status, body = self._post(texts, seconds)
        longest = max(map(len, texts), default=0)
        if status == 400 and TOO_LONG in body and longest > LEAST_CHARS:
            shorter = max(int(longest * SHORTENED), LEAST_CHARS)
            return self._embed([text[:shorter] for text in texts], seconds)
        if status == 404:
            raise EmbedderDown(f"Ollama has no model {self.model}: run `ollama pull {self.model}`.")
        if status != 200:
            raise EmbedderRefused(f"Ollama answered {status} to an embedding request.")
        try:
            embeddings = json.loads(body)["embeddings"]
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise EmbedderRefused(f"Ollama at {settings.OLLAMA_URL} sent no embeddings.") from error
        vectors = answered_rows(embeddings, len(texts), f"Ollama at {settings.OLLAMA_URL}")
        self.dimension = vectors.shape[1]
        return vectors

    def _post(self, texts: list[str], seconds: float) -> tuple[int, bytes]:
        """Status and body of the answer. Raises EmbedderDown, also where the body is not there whole within that time."""
        import httpx

        ends, body = time.monotonic() + seconds, bytearray()
        try:
            with self._client.stream(
                "POST",
                f"{settings.OLLAMA_URL.rstrip('/')}/api/embed",
                json={"model": self.model, "input": texts, "truncate": True},
                timeout=httpx.Timeout(seconds, connect=CONNECT_SECONDS),
            ) as answer:
                for part in answer.iter_bytes():
                    body += part
                    if len(body) > MAX_BYTES or time.monotonic() > ends:
                        raise EmbedderDown(f"Ollama at {settings.OLLAMA_URL} does not come to an end.")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise EmbedderDown(
                f"Ollama at {settings.OLLAMA_URL} does not answer: {error or type(error).__name__}."
            ) from error
        return answer.status_code, bytes(body)


_FACTORIES: dict[str, Callable[[str], Embedder]] = {
    "ollama": OllamaEmbedder,
    "fastembed": FastembedEmbedder,
    "sentence-transformers": SentenceTransformersEmbedder,
}
_lock = threading.Lock()


def embedder_for(name: str) -> Embedder:
    """The process' one embedder of that name: `static`, `minilm`, `mpnet` or `ENGINE:MODEL`.

    Raises EmbedderMissing for a name that is neither and where a package is not installed.
    """
    with _lock:
        return _make(name)


@cache
def _make(name: str) -> Embedder:
    if name == StaticEmbedder.name:
        return StaticEmbedder()
    if name in OWN:
        return OwnEmbedder(name)
    engine, _, model = name.partition(":")
    factory = _FACTORIES.get(engine)
    if factory is None or not model:
        engines = ", ".join(f"{engine}:MODEL" for engine in _FACTORIES)
        raise EmbedderMissing(
            f"IZZY_EMBEDDER must be static or one of {', '.join(OWN)}, {engines}, not {name!r}.",
            code="unknown_embedder",
        )
    return factory(model)


def encoder_knows(name: str, languages: Collection[str]) -> bool:
    """Whether the encoder of that name has learnt one of these languages (codes); of most nobody has told us."""
    return ":".join(name.split(":")[:2]) not in ENGLISH_ALONE or "en" in languages


def taught_mark(name: str) -> bytes:
    """The mark of a version of an encoder that comes taught, whose vectors no other has; b"" of one that learns here."""
    return taught(name).mark if name in OWN else b""


@cache
def static_embedder() -> StaticEmbedder | None:
    """The bundled embedder, None where wordllama has no build for the platform; which it is stays so as long as the process."""
    try:
        embedder = embedder_for(StaticEmbedder.name)
    except EmbedderMissing:
        return None
    assert isinstance(embedder, StaticEmbedder)  # noqa: S101 - that is its name
    return embedder
