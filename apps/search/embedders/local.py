"""Transformer embedders that run in this process, from optional extras."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from apps.search.embedders.base import EmbedderDown, EmbedderMissing, Matrix, QueryWeights, Vector, unit_rows


class _Local:
    """Base of both; `kind` names the extra too."""

    kind: str
    inline = False
    match = 0.9
    query_prefix = ""
    document_prefix = ""

    def __init__(self, model: str) -> None:
        self.name = f"{self.kind}:{model}"
        self.model = model
        self.dimension = 0

    def _rows(self, vectors: Any) -> Matrix:
        rows = unit_rows(np.asarray(list(vectors)))
        self.dimension = rows.shape[1]
        return rows

    def _missing(self) -> EmbedderMissing:
        needs = f"needs an optional part: run `make extra NAME={self.kind}`."
        return EmbedderMissing(f"The embedder {self.name} {needs}")


class FastembedEmbedder(_Local):
    """`fastembed:MODEL`: ONNX models; the model is downloaded at first use."""

    kind = "fastembed"
    noise = 0.3

    @cached_property
    def _engine(self) -> Any:
        try:
            from fastembed import TextEmbedding
        except ImportError as error:
            raise self._missing() from error
        return _start(self.name, lambda: TextEmbedding(model_name=self.model))

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._rows(self._engine.passage_embed(list(texts)))

    def embed_query(self, text: str, weights: QueryWeights | None = None) -> Vector:
        return np.asarray(self._rows(self._engine.query_embed([text]))[0])


class SentenceTransformersEmbedder(_Local):
    """`sentence-transformers:PATH_OR_NAME`: a local folder, or a name that is downloaded at first use."""

    kind = "sentence-transformers"
    noise = 0.1

    @cached_property
    def _engine(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise self._missing() from error
        return _start(self.name, lambda: SentenceTransformer(self.model))

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return self._rows(self._engine.encode_document(list(texts)))

    def embed_query(self, text: str, weights: QueryWeights | None = None) -> Vector:
        return np.asarray(self._rows(self._engine.encode_query([text]))[0])


def _start(name: str, make: Any) -> Any:
    try:
        return make()
    except (OSError, ValueError, RuntimeError) as error:
        raise EmbedderDown(f"The embedder {name} could not be loaded: {error}") from error
