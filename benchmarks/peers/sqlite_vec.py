"""sqlite-vec: a virtual table with the owner as its partition key. It has neither texts nor words of its own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import sqlite_vec as extension

from benchmarks.peers._serving import TOP


class Peer:
    def __init__(self, folder: Path, dimension: int) -> None:
        folder.mkdir()
        self.connection = apsw.Connection(str(folder / "vectors.sqlite3"))
        self.connection.enable_load_extension(True)
        self.connection.load_extension(extension.loadable_path())
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=NORMAL")
        self.connection.execute(
            "CREATE VIRTUAL TABLE notes USING vec0("
            f"owner text partition key, vector float[{dimension}] distance_metric=cosine, +id text, +text text)"
        )

    def add(self, owner: str, ids: Sequence[str], texts: Sequence[str], vectors: Any) -> None:
        self.connection.execute("BEGIN")
        self.connection.executemany(
            "INSERT INTO notes(owner, vector, id, text) VALUES (?, ?, ?, ?)",
            [
                (owner, vector.tobytes(), key, text)
                for key, text, vector in zip(ids, texts, vectors, strict=True)
            ],
        )
        self.connection.execute("COMMIT")

    fill = add

    def search(self, owner: str, text: str, vector: Any) -> list[str]:
        sql = "SELECT id, text FROM notes WHERE vector MATCH ? AND k = ? AND owner = ?"
        return [row[0] for row in self.connection.execute(sql, (vector.tobytes(), TOP, owner))]
