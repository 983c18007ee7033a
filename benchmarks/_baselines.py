"""Plain keyword and vector search over the same texts; the least that steps cost: bare numpy and sqlite3 on the same data."""

import math
import re
import sqlite3
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from apps.core.db.pool import database_file
from apps.search.embedders.base import unit_rows
from apps.search.embedders.engines import embedder_for
from apps.search.embedders.static import StaticEmbedder
from apps.search.text.analysis import document_terms
from benchmarks._bare import Bare
from benchmarks._bare_postgresql import BarePostgreSQL
from benchmarks.report import Timing, measure

K1, B = 1.2, 0.75


def bm25_order(texts: list[str], question: str) -> list[int]:
    """Places of the texts by BM25 over plain lower-case words, best first."""
    postings, lengths = _postings(tuple(texts))
    scores = np.zeros(len(texts))
    norm = K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-9))
    for word in set(_words(question)):
        found = postings.get(word)
        if found is not None:
            rows, counts = found
            weight = math.log(1 + (len(texts) - len(rows) + 0.5) / (len(rows) + 0.5))
            scores[rows] += weight * counts * (K1 + 1) / (counts + norm[rows])
    return list(np.argsort(-scores, kind="stable"))


def cosine_order(texts: list[str], question: str) -> list[int]:
    """Places of the texts by cosine of the bundled vectors, plainly averaged, best first."""
    return list(np.argsort(-(_means(tuple(texts)) @ _means((question,))[0]), kind="stable"))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@lru_cache(maxsize=8)
def _postings(
    texts: tuple[str, ...],
) -> tuple[dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]], NDArray[np.float64]]:
    lists: dict[str, tuple[list[int], list[int]]] = {}
    for row, text in enumerate(texts):
        for word, count in Counter(_words(text)).items():
            rows, counts = lists.setdefault(word, ([], []))
            rows.append(row)
            counts.append(count)
    arrays = {
        word: (np.array(rows), np.array(counts, dtype=float)) for word, (rows, counts) in lists.items()
    }
    return arrays, np.array([float(len(_words(text))) for text in texts])


@lru_cache(maxsize=2048)
def _means(texts: tuple[str, ...]) -> NDArray[np.float32]:
    embedder = embedder_for("static")
    assert isinstance(embedder, StaticEmbedder)
    return unit_rows(np.stack([embedder.plain_mean(text) for text in texts]))


def product(matrix: NDArray[np.float32], queries: NDArray[np.float32]) -> Timing:
    """`X @ q` and the ten best."""
    return measure(lambda n: np.argpartition(matrix @ queries[n % len(queries)], -10)[-10:])


def bare_database(path: Path) -> "BareSQLite | BarePostgreSQL":
    """The bare connection to the database at hand, which is at `path` where it is SQLite's."""
    if database_file() is not None:
        return BareSQLite(path)
    return BarePostgreSQL()


class BareSQLite(Bare):
    """A connection as Izzy opens it, without Django."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        for pragma in (
            "journal_mode=WAL",
            "synchronous=NORMAL",
            "cache_size=-32000",
            "mmap_size=268435456",
        ):
            self.connection.execute(f"PRAGMA {pragma}")

    def __exit__(self, *exc: object) -> None:
        self.connection.close()

    def full_text(self, owner: int, questions: Sequence[str]) -> Timing:
        """The ten best of one owner for the words of a question, their owner inside each term."""
        sql = "SELECT rowid FROM search_terms WHERE search_terms MATCH ? ORDER BY rank LIMIT 10"
        matches = [
            " OR ".join(f'"{owner}x{term}"' for term in document_terms(text)[1]) for text in questions
        ]
        return measure(lambda n: self.connection.execute(sql, (matches[n % len(matches)],)).fetchall())

    def load(self, user: str) -> Timing:
        """All vectors of a user into one bytearray."""
        sql = "SELECT vector FROM search_passage WHERE user_id = ?"

        def run(_: int) -> NDArray[np.float32]:
            joined = bytearray()
            for (vector,) in self.connection.execute(sql, (user,)):
                joined += vector
            return np.frombuffer(joined, dtype="<f2").reshape(-1, 256).astype(np.float32)

        return measure(run, 5)

    def _insert(self, rows: list[tuple[int, str]]) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(
            "INSERT INTO bare VALUES (?, ?, ?)", [(*row, bytes(512)) for row in rows]
        )
        self.connection.executemany("INSERT INTO bare_text(rowid, text) VALUES (?, ?)", rows)
        self.connection.execute("COMMIT")

    def _make_table(self) -> None:
        self.connection.executescript(
            "DROP TABLE IF EXISTS bare; DROP TABLE IF EXISTS bare_text;"
            "CREATE TABLE bare(id INTEGER PRIMARY KEY, text TEXT, vector BLOB);"
            "CREATE VIRTUAL TABLE bare_text USING fts5(text, tokenize='porter')"
        )
