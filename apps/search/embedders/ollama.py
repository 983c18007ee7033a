"""Embeddings of an Ollama server (`POST /api/embed`)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from django.conf import settings

from apps.search.embedders.base import EmbedderDown, Matrix, QueryWeights, Vector, unit_rows

if TYPE_CHECKING:
    import httpx

PREFIXES = {
    "nomic-embed-text": ("search_query: ", "search_document: "),
    "mxbai-embed-large": ("Represent this sentence for searching relevant passages: ", ""),
}
"""Model -> the prefixes that its card asks for before a query and before a document."""
CALIBRATION = {"nomic-embed-text": (0.45, 0.9), "mxbai-embed-large": (0.4, 0.9)}
BATCH = 64
QUERY_SECONDS = 5.0
DOCUMENT_SECONDS = 120.0


class OllamaEmbedder:
    """`ollama:MODEL`, at OLLAMA_URL. `dimension` is 0 until the first answer."""

    inline = False

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
        return np.concatenate(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)

    def embed_query(self, text: str, weights: QueryWeights | None = None) -> Vector:
        return np.asarray(self._embed([self.query_prefix + text], QUERY_SECONDS)[0])

    def _embed(self, texts: list[str], seconds: float) -> Matrix:
        import httpx  # takes a fifth of a second: not at every start

        timeout = httpx.Timeout(seconds, connect=2.0)
        try:
            answer = httpx.post(
                f"{settings.OLLAMA_URL.rstrip('/')}/api/embed",
                json={"model": self.model, "input": texts, "truncate": True},
                timeout=timeout,
            )
            answer.raise_for_status()
            vectors = unit_rows(np.asarray(answer.json()["embeddings"], dtype=np.float32))
        except httpx.HTTPStatusError as error:
            raise EmbedderDown(_status_message(self.model, error.response)) from error
        except httpx.HTTPError as error:
            raise EmbedderDown(
                f"Ollama at {settings.OLLAMA_URL} does not answer: {error or type(error).__name__}."
            ) from error
        except (KeyError, TypeError, ValueError) as error:
            raise EmbedderDown(f"Ollama at {settings.OLLAMA_URL} sent no embeddings.") from error
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise EmbedderDown(f"Ollama sent {len(vectors)} embeddings for {len(texts)} texts.")
        self.dimension = vectors.shape[1]
        return vectors


def _status_message(model: str, answer: "httpx.Response") -> str:
    if answer.status_code == 404:
        return f"Ollama has no model {model}: run `ollama pull {model}`."
    return f"Ollama answered {answer.status_code} to an embedding request."
