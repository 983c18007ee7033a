"""Values that go between search and its database: UUIDs and aware times, whatever the columns hold."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.search.documents import Source

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Head:
    """The state of a user's index as one row tells it."""

    user_id: UUID
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

    ids: Ids
    features: NDArray[np.void]
    vectors: NDArray[np.float16]
    embedded: NDArray[np.bool_]
    terms: list[str] | None = None


class Row(NamedTuple):
    """A passage as callers of search see it."""

    id: int
    source: Source
    source_id: UUID
    external_id: str
    text: str
    conversation_id: UUID | None
    happened_at: datetime
    speaker: str
    labels: str  # JSON of [kind, words, stems], "" for none
    past: bool


class Stem(NamedTuple):
    """A stem that full text is asked for."""

    text: str
    prefix: bool = False  # stands for all stems that begin so
