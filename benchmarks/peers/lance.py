"""LanceDB: one table, filtered to the owner before the vectors are compared, which all are."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lancedb
import pyarrow as pa

from benchmarks.peers._serving import TOP


class Peer:
    def __init__(self, folder: Path, dimension: int) -> None:
        vector = pa.list_(pa.float32(), dimension)
        columns = [
            ("id", pa.string()),
            ("owner", pa.string()),
            ("text", pa.string()),
            ("vector", vector),
        ]
        self.notes = lancedb.connect(folder).create_table("notes", schema=pa.schema(columns))

    def add(self, owner: str, ids: Sequence[str], texts: Sequence[str], vectors: Any) -> None:
        rows = zip(ids, texts, vectors, strict=True)
        self.notes.add(
            [{"id": key, "owner": owner, "text": text, "vector": vector} for key, text, vector in rows]
        )

    fill = add

    def search(self, owner: str, text: str, vector: Any) -> list[str]:
        asked = self.notes.search(vector).distance_type("cosine")
        found = asked.where(f"owner = '{owner}'", prefilter=True).limit(TOP).to_list()
        return [row["id"] for row in found]
