"""Values that go between search and its database: UUIDs and aware times, whatever the columns hold."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.search.documents import Source

Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Space(NamedTuple):
    """A vector space as a row tells it; `noise` and `match` are its calibration."""

    id: int
    name: str
    dimension: int
    noise: float
    match: float


@dataclass(frozen=True, slots=True)
class Head:
    """The state of a user's index as one row tells it. `side` is None where no vector of IZZY_EMBEDDER has been stored."""

    user_id: UUID
    owner: int
    change: int
    tombstones_from: int
    language: str  # what the owner prefers, "" where it is to be detected
    base: Space
    side: Space | None


@dataclass(frozen=True, slots=True)
class Batch:
    """Passages in the order of their change. `vectors` is (n, dimension) float16, zeros where `embedded` is False.

    `sides` holds the side vectors of the passages at `side_places` alone, (m, its dimension) float16.
    """

    ids: Ids
    features: NDArray[np.void]
    vectors: NDArray[np.float16]
    embedded: Mask
    side_places: Ids
    sides: NDArray[np.float16]
    terms: list[str] | None = None

    def only(self, kept: Mask) -> "Batch":
        """The batch with some of its passages."""
        sides = kept[self.side_places]
        return Batch(
            self.ids[kept],
            self.features[kept],
            self.vectors[kept],
            self.embedded[kept],
            (np.cumsum(kept) - 1)[self.side_places[sides]],
            self.sides[sides],
            self.terms and [term for term, keep in zip(self.terms, kept, strict=True) if keep],
        )


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


class OccasionRow(NamedTuple):
    """An occasion with its vectors: float16 bytes, None where it has none."""

    id: int
    source_id: UUID
    text: str
    vector: bytes | None
    side_vector: bytes | None


class Stem(NamedTuple):
    """A stem that full text is asked for."""

    text: str
    prefix: bool = False  # stands for all stems that begin so
