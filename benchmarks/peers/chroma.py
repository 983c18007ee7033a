"""Chroma: one collection, filtered to the owner."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chromadb
from chromadb.config import Settings

from benchmarks.peers._serving import TOP


class Peer:
    def __init__(self, folder: Path, dimension: int) -> None:
        client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
        self.notes = client.create_collection(
            "notes", metadata={"hnsw:space": "cosine"}, embedding_function=None
        )

    def add(self, owner: str, ids: Sequence[str], texts: Sequence[str], vectors: Any) -> None:
        self.notes.add(
            ids=list(ids),
            embeddings=vectors,
            documents=list(texts),
            metadatas=[{"owner": owner} for _ in ids],
        )

    fill = add

    def search(self, owner: str, text: str, vector: Any) -> list[str]:
        found = self.notes.query(query_embeddings=[vector], n_results=TOP, where={"owner": owner})
        return list(found["ids"][0])
