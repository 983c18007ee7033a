"""The least that each step can cost on this machine: bare numpy and bare sqlite3 over the same data."""

import sqlite3
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from apps.search.text.analysis import document_terms

ROUNDS = 60


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds."""

    p50: float
    p95: float


def measure(function: Callable[[int], object], rounds: int = ROUNDS) -> Timing:
    """Call `function(0)`, `function(1)`, … and time each call."""
    times = []
    for number in range(rounds):
        began = time.perf_counter()
        function(number)
        times.append((time.perf_counter() - began) * 1000)
    return Timing(statistics.median(times), sorted(times)[int(len(times) * 0.95)])


def product(matrix: NDArray[np.float32], queries: NDArray[np.float32]) -> Timing:
    """`X @ q` and the ten best."""
    return measure(lambda n: np.argpartition(matrix @ queries[n % len(queries)], -10)[-10:])


class BareSQLite:
    """A connection as Izzy opens it, without Django."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "cache_size=-32000", "mmap_size=268435456"):
            self.connection.execute(f"PRAGMA {pragma}")

    def close(self) -> None:
        self.connection.close()

    def full_text(self, owner: int, questions: Sequence[str]) -> Timing:
        """The ten best of one owner for the words of a question, their owner inside each term."""
        sql = "SELECT rowid FROM search_terms WHERE search_terms MATCH ? ORDER BY rank LIMIT 10"
        matches = [" OR ".join(f'"{owner}x{term}"' for term in document_terms(text)[1]) for text in questions]
        return measure(lambda n: self.connection.execute(sql, (matches[n % len(matches)],)).fetchall())

    def load(self, user: str) -> Timing:
        """All vectors of a user into one bytearray."""
        sql = "SELECT vector_a FROM search_passage WHERE user_id = ?"

        def run(_: int) -> NDArray[np.float32]:
            joined = bytearray()
            for (vector,) in self.connection.execute(sql, (user,)):
                joined += vector
            return np.frombuffer(joined, dtype="<f2").reshape(-1, 256).astype(np.float32)

        return measure(run, 5)

    def insert_bulk(self, texts: Sequence[str]) -> float:
        """Milliseconds per row: text, vector and full text of a batch in one transaction."""
        self._make_table()
        began = time.perf_counter()
        self.connection.execute("BEGIN IMMEDIATE")
        rows = [(number, text, bytes(512)) for number, text in enumerate(texts, 1)]
        self.connection.executemany("INSERT INTO bare VALUES (?, ?, ?)", rows)
        self.connection.executemany(
            "INSERT INTO bare_text(rowid, text) VALUES (?, ?)", [row[:2] for row in rows]
        )
        self.connection.execute("COMMIT")
        return (time.perf_counter() - began) * 1000 / len(texts)

    def insert_single(self, texts: Sequence[str]) -> Timing:
        """The same, one transaction per row."""
        self._make_table()

        def run(number: int) -> None:
            self.connection.execute("BEGIN IMMEDIATE")
            self.connection.execute(
                "INSERT INTO bare VALUES (?, ?, ?)", (number + 1, texts[number], bytes(512))
            )
            self.connection.execute(
                "INSERT INTO bare_text(rowid, text) VALUES (?, ?)", (number + 1, texts[number])
            )
            self.connection.execute("COMMIT")

        return measure(run, len(texts))

    def _make_table(self) -> None:
        self.connection.executescript(
            "DROP TABLE IF EXISTS bare; DROP TABLE IF EXISTS bare_text;"
            "CREATE TABLE bare(id INTEGER PRIMARY KEY, text TEXT, vector BLOB);"
            "CREATE VIRTUAL TABLE bare_text USING fts5(text, tokenize='porter')"
        )
