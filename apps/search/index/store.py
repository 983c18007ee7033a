"""What the in-process index reads from the database: bare SQL, since model objects would triple the time."""

from dataclasses import dataclass
from typing import cast
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


@dataclass(frozen=True, slots=True)
class Batch:
    """Passages in the order of their change. `vectors` is (n, dimension) float16, zeros where `embedded` is False."""

    ids: NDArray[np.int64]
    features: NDArray[np.void]
    vectors: NDArray[np.float16]
    embedded: NDArray[np.bool_]
    terms: list[str] | None = None


_HEAD = (
    "SELECT o.number, o.change, o.tombstones_from, s.id, s.name, s.slot, s.dimension, s.noise, s.match "
    "FROM search_indexowner o JOIN search_embeddingspace s ON s.state = 'active' WHERE o.user_id = ?"
)


def read_head(user_id: UUID) -> Head | None:
    """None where the user has nothing indexed."""
    with connection.cursor() as cursor:
        row = cursor.connection.execute(_HEAD, (user_id.hex,)).fetchone()
    return Head(*row) if row else None


def read_all(user_id: UUID, head: Head) -> Batch:
    """Every passage of the user."""
    sql = (
        f"SELECT id, features, vector_{head.slot} FROM search_passage "  # noqa: S608  the slot is a or b
        "INDEXED BY passage_user_change WHERE user_id = ? ORDER BY change, id"
    )
    return _batch(sql, (user_id.hex,), head, with_terms=False)


def read_changed(user_id: UUID, head: Head, after: int) -> Batch:
    """Passages written or embedded after a change, with their terms."""
    sql = (
        f"SELECT id, features, vector_{head.slot}, terms FROM search_passage "  # noqa: S608
        "INDEXED BY passage_user_change WHERE user_id = ? AND change > ? ORDER BY change, id"
    )
    return _batch(sql, (user_id.hex, after), head, with_terms=True)


def read_removed(user_id: UUID, after: int) -> NDArray[np.int64]:
    """Ids of passages removed after a change."""
    sql = "SELECT passage_id FROM search_tombstone WHERE user_id = ? AND change > ?"
    with connection.cursor() as cursor:
        rows = cursor.connection.execute(sql, (user_id.hex, after)).fetchall()
    return np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))


def _batch(sql: str, parameters: tuple[object, ...], head: Head, *, with_terms: bool) -> Batch:
    with connection.cursor() as cursor:
        rows = cursor.connection.execute(sql, parameters).fetchall()
    columns = list(zip(*rows, strict=True)) or [()] * 4
    size = head.dimension * 2
    vectors, embedded = _vectors(columns[2], size)
    return Batch(
        ids=np.array(columns[0], dtype=np.int64),
        features=np.frombuffer(b"".join(columns[1]), dtype=features.DTYPE),
        vectors=np.frombuffer(vectors, dtype="<f2").reshape(len(rows), head.dimension),
        embedded=embedded,
        terms=list(columns[3]) if with_terms else None,
    )


def _vectors(blobs: tuple[bytes | None, ...], size: int) -> tuple[bytes, NDArray[np.bool_]]:
    try:
        joined = b"".join(cast("tuple[bytes, ...]", blobs))
    except TypeError:  # one is missing
        joined = b""
    if blobs and len(joined) == size * len(blobs) > 0:
        return joined, np.ones(len(blobs), dtype=bool)
    known = [blob is not None and len(blob) == size for blob in blobs]
    empty = bytes(size)
    return b"".join(blob if ok and blob else empty for blob, ok in zip(blobs, known, strict=True)), np.array(
        known
    )
