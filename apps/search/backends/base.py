"""The interface of a storage of search, and the values that go between: UUIDs and aware times, whatever the columns hold."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.search.documents import Source
from apps.search.models import Passage

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
    time_zone: str  # the name of the owner's, "" for UTC
    base: Space
    side: Space | None


HEAD = (
    "SELECT o.number, o.change, o.tombstones_from, COALESCE(p.language, ''), COALESCE(p.time_zone, ''), "
    "b.id, b.name, b.dimension, b.noise, b.match, s.id, s.name, s.dimension, s.noise, s.match "
    "FROM search_indexowner o JOIN search_embeddingspace b ON b.role = 'base' "
    "LEFT JOIN search_embeddingspace s ON s.role = 'side' AND s.name = %s "
    "LEFT JOIN accounts_preferences p ON p.user_id = o.user_id WHERE o.user_id = %s"
)
"""Of an embedder's name and a user's id: the row that `head_of` reads."""


def head_of(user_id: UUID, rows: Sequence[tuple[Any, ...]]) -> Head | None:
    """The head that the row of HEAD describes; None where there is none."""
    if not rows:
        return None
    owner, change, tombstones_from, language, time_zone = rows[0][:5]
    base, side = rows[0][5:10], rows[0][10:]
    beside = None if side[0] is None else Space(*side)
    return Head(user_id, owner, change, tombstones_from, language, time_zone, Space(*base), beside)


@dataclass(frozen=True, slots=True)
class Batch:
    """Passages in the order of their change, or of their ids. `vectors` is (n, dimension) float16, zeros where `embedded` is False.

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
    """An occasion with its vectors: float16 bytes, None where it has none. `source` is the id of its document, as the storage gives
    it: hundreds are read for a message, of which few are asked whose they are."""

    id: int
    source: UUID | str
    text: str
    vector: bytes | None
    side_vector: bytes | None


class Stem(NamedTuple):
    """A stem that full text is asked for."""

    text: str
    prefix: bool = False  # stands for all stems that begin so


class Storage(Protocol):
    """The rows of users' indexes. Writes are made inside the caller's transaction and raise the user's change number.

    Full text holds a stem as `<owner number>x<stem>`, so that a query reads the postings of its owner alone, however much
    others have stored. Neither positions nor counts are kept: ranking counts a term once per passage.
    """

    def head(self, user_id: UUID) -> Head | None:
        """None where the user has nothing indexed."""

    def read_all(self, head: Head, *, past: bool = False) -> Batch:
        """Every passage of the user's texts, with `past` also those of former ones."""

    def read_changed(self, head: Head, after: int) -> Batch:
        """Passages of texts written or embedded after a change, with their terms."""

    def read_occasions(self, head: Head, after: int = -1) -> Iterator[Batch]:
        """Occasions written or embedded after a change, some thousands at a time."""

    def occasions_fetch(self, user_id: UUID, ids: Sequence[int]) -> list[OccasionRow]:
        """The user's occasions among these ids (some hundreds), with their vectors."""

    def read_removed(self, head: Head, after: int) -> Ids:
        """Ids of passages removed after a change."""

    def rows_fetch(self, user_id: UUID, ids: Sequence[int]) -> dict[int, Row]:
        """The user's passages among these ids."""

    def rows_insert(self, user_id: UUID, passages: Sequence[Passage]) -> None:
        """Write new passages with their full text; their `change` is set."""

    def rows_delete(self, user_id: UUID, ids: Sequence[int]) -> None:
        """Remove the user's passages with these ids (a few hundred at most) and their full text, leaving tombstones."""

    def postings(self, owner: int, stems: Sequence[Stem]) -> list[Ids]:
        """For each of some stems the ids of the owner's passages with it, ascending."""

    def postings_matching(self, owner: int, words: Sequence[Sequence[Stem]], *, limit: int) -> Ids:
        """Ids of the owner's passages that have, of each word, at least one of its stems; the newest, newest first."""

    def segments_merge(self) -> None:
        """Drop the terms of removed passages for good; not inside a transaction."""


class Postings(Protocol):
    """Full text compared with the stems of passages, and made anew from them."""

    def wrong(self, user_id: UUID) -> Iterator[int]:
        """Ids of the user's passages whose postings are not their terms, and ids with postings of the user that are no
        passage."""

    def renew(self, user_id: UUID, ids: Collection[int]) -> None:
        """Make the postings of these ids what their passages' terms say, in the caller's transaction; those of an id
        without a passage go."""

    def owners(self) -> Iterator[int]:
        """The numbers of the owners of whom there are postings, where postings can outlive their passages."""

    def clear(self, owner: int) -> None:
        """Take all postings of an owner away, in the caller's transaction."""

    def sound(self) -> bool:
        """Whether the structure of full text itself is whole, as far as the engine can tell."""

    def empty(self) -> None:
        """Empty full text, in the caller's transaction; `renew` fills it again."""
