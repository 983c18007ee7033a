"""mem0 with the store that it comes with (Qdrant in a folder), without its model: texts are added as they are, and the vectors
are those that were given."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none-is-called"}

from mem0 import Memory  # it reads the environment

from benchmarks.peers._serving import TOP


class Given:
    """An embedder that knows the vectors of the texts."""

    config: Any = None

    def __init__(self) -> None:
        self.vectors: dict[str, Any] = {}

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return list(map(float, self.vectors[text]))

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


class Peer:
    def __init__(self, folder: Path, dimension: int) -> None:
        store = {"path": str(folder), "embedding_model_dims": dimension, "on_disk": True}
        config = {
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": str(folder.with_name("history.db")),
        }
        self.memory = Memory.from_config(config)
        self.given = self.memory.embedding_model = Given()

    def add(self, owner: str, ids: Sequence[str], texts: Sequence[str], vectors: Any) -> None:
        self.given.vectors = dict(zip(texts, vectors, strict=True))
        for text in texts:
            self.memory.add(text, user_id=owner, infer=False)

    def fill(self, owner: str, ids: Sequence[str], texts: Sequence[str], vectors: Any) -> None:
        payloads = [{"data": text, "user_id": owner} for text in texts]
        self.memory.vector_store.insert(vectors=vectors.tolist(), payloads=payloads, ids=list(ids))

    def search(self, owner: str, text: str, vector: Any) -> list[str]:
        self.given.vectors = {text: vector}
        try:
            found = self.memory.search(text, filters={"user_id": owner}, top_k=TOP)
        except (TypeError, ValueError):  # as it was called before its second version
            found = self.memory.search(text, user_id=owner, limit=TOP)
        return [str(row["id"]) for row in found["results"]]
