"""What the in-process index reads from the database: bare SQL, since model objects would triple the time."""

from dataclasses import dataclass
from uuid import UUID

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from apps.search import features


@dataclass(frozen=True, slots=True)
class Head:
    """The state of a user's index as one row tells it."""

    owner: int
    change: int
    tombstones_from: int
    space_id: int
    space_name: str
    slot: str
    dimension: int
    noise: float
    match: float
    language: str  # what the owner prefers, "" where it is to be detected


@dataclass(frozen=True, slots=True)
class Batch:
    """Passages in the order of their change. `vectors` is (n, dimension) float16, zeros where `embedded` is False."""

    ids: NDArray[np.int64]
    features: NDArray[np.void]
    vectors: NDArray[np.float16]
    embedded: NDArray[np.bool_]
    terms: list[str] | None = None


_HEAD = (
    "SELECT o.number, o.change, o.tombstones_from, s.id, s.name, s.slot, s.dimension, s.noise, s.match, "
    "COALESCE(p.language, '') FROM search_indexowner o JOIN search_embeddingspace s ON s.state = 'active' "
    "LEFT JOIN accounts_preferences p ON p.user_id = o.user_id WHERE o.user_id = ?"
)


def read_head(user_id: UUID) -> Head | None:
    """None where the user has nothing indexed."""
    with connection.cursor() as cursor:
        row = cursor.connection.execute(_HEAD, (user_id.hex,)).fetchone()
    return Head(*row) if row else None


def has_past(user_id: UUID) -> bool:
    """Whether any document of the user said something else before."""
    sql = "SELECT 1 FROM search_passage INDEXED BY passage_past WHERE user_id = ? AND past LIMIT 1"
    with connection.cursor() as cursor:
        return cursor.connection.execute(sql, (user_id.hex,)).fetchone() is not None


def read_all(user_id: UUID, head: Head, *, past: bool = False) -> Batch:
    """Every passage of the user, with `past` also those of former texts."""
    which = "" if past else "AND NOT past "
    sql = (
        f"SELECT id, features, vector_{head.slot} FROM search_passage "  # noqa: S608  the slot is a or b
        f"INDEXED BY passage_user_change WHERE user_id = ? {which}ORDER BY change, id"
    )
    return _batch(sql, (user_id.hex,), head, with_terms=False)


def read_changed(user_id: UUID, head: Head, after: int) -> Batch:
    """Passages written or embedded after a change, with their terms."""
    sql = (
        f"SELECT id, features, vector_{head.slot}, terms FROM search_passage "  # noqa: S608
        "INDEXED BY passage_user_change WHERE user_id = ? AND change > ? AND NOT past ORDER BY change, id"
    )
    return _batch(sql, (user_id.hex, after), head, with_terms=True)


def read_removed(user_id: UUID, after: int) -> NDArray[np.int64]:
    """Ids of passages removed after a change."""
    sql = "SELECT passage_id FROM search_tombstone WHERE user_id = ? AND change > ?"
    with connection.cursor() as cursor:
        rows = cursor.connection.execute(sql, (user_id.hex, after)).fetchall()
    return np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))


def _batch(sql: str, parameters: tuple[object, ...], head: Head, *, with_terms: bool) -> Batch:
    size = head.dimension * 2
    missing = bytes(size)
    ids: list[int] = []
    gaps: list[int] = []
    packed, vectors = bytearray(), bytearray()
    with connection.cursor() as cursor:
        rows = cursor.connection.execute(sql, parameters)
        terms = None
        if with_terms:
            whole = rows.fetchall()
            terms = [row[3] for row in whole]
            rows = (row[:3] for row in whole)
        for passage_id, facts, vector in rows:  # a loop of few steps: it runs once per passage of the user
            ids.append(passage_id)
            packed += facts
            if vector is None:
                gaps.append(len(ids) - 1)
                vector = missing
            vectors += vector
    embedded = np.ones(len(ids), dtype=bool)
    embedded[gaps] = False
    return Batch(
        ids=np.array(ids, dtype=np.int64),
        features=np.frombuffer(packed, dtype=features.DTYPE),
        vectors=np.frombuffer(vectors, dtype="<f2").reshape(len(ids), head.dimension),
        embedded=embedded,
        terms=terms,
    )
