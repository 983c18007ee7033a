"""Database interface of search: UUIDs and aware times go in and come out, whatever the columns hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.search.documents import Source
from apps.search.models import Passage

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


class Backend(Protocol):
    """The rows of users' indexes. Writes are made inside the caller's transaction and raise the user's change number."""

    def head(self, user_id: UUID) -> Head | None:
        """None where the user has nothing indexed."""

    def read_all(self, head: Head, *, past: bool = False) -> Batch:
        """Every passage of the user, with `past` also those of former texts."""

    def read_changed(self, head: Head, after: int) -> Batch:
        """Passages written or embedded after a change, with their terms."""

    def read_removed(self, head: Head, after: int) -> Ids:
        """Ids of passages removed after a change."""

    def rows_insert(self, user_id: UUID, passages: Sequence[Passage]) -> None:
        """Write new passages with their full text; their `change` is set."""

    def rows_delete(self, user_id: UUID, ids: Sequence[int]) -> None:
        """Remove the user's passages with these ids (a few hundred at most) and their full text, leaving tombstones."""

    def postings(self, owner: int, stem: Stem) -> Ids:
        """Ids of the owner's passages with a stem, ascending."""

    def postings_matching(self, owner: int, words: Sequence[Sequence[Stem]], *, limit: int) -> Ids:
        """Ids of the owner's passages that have, of each word, at least one of its stems; the newest, newest first."""

    def rows_fetch(self, user_id: UUID, ids: Sequence[int]) -> dict[int, Row]:
        """The user's passages among these ids."""
