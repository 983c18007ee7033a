"""The occasions nearest to what is being said: for proactive recall and deep memory, plain search does without.

Signs of all phrases choose a few hundred (`Phrases`, in memory), whose vectors are then read from the database in one query and
measured exactly. What all phrases would measure by chance is estimated from their signs, on the line that the measured ones give.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from uuid import UUID

import numpy as np
from django.utils import timezone
from numpy.typing import NDArray

from apps.core.ids import parse_id
from apps.search.backends import Head, Space, backend
from apps.search.documents import Scope
from apps.search.embedders.base import Matrix
from apps.search.index.cache import phrases_open
from apps.search.index.side import predicted
from apps.search.index.signs import Signs, distances, products

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

SAMPLE = 64
"""Phrases, spread evenly, that are measured beside the nearest, to tell what chance is."""
EVERYTHING = Scope()


class Phrase(NamedTuple):
    """An occasion of a document; `document` is its hash, as the rows of the index have it (`uuid_hash`)."""

    passage_id: int
    document: int
    text: str
    source: UUID | str

    @property
    def source_id(self) -> UUID:
        return parse_id(self.source)


@dataclass(frozen=True, slots=True)
class Nearness:
    """The cosines of the found phrases with each clause in one space, (clauses, phrases), and how all phrases spread.

    Where a phrase waits for its side vector the cosine is what the base space predicts. `mean` and `deviation`, (clauses,),
    are those of all phrases within the scope: what likeness is by chance.
    """

    cosines: Matrix
    mean: Floats
    deviation: Floats

    @property
    def standing(self) -> Matrix:
        """How many deviations above the mean each is."""
        return np.asarray((self.cosines - self.mean[:, None]) / self.deviation[:, None])


@dataclass(frozen=True, slots=True)
class Nearest:
    """Phrases, in no order; `number` is how many there are within the scope. A space without any vector is None."""

    phrases: list[Phrase]
    number: int
    base: Nearness | None
    side: Nearness | None


NOTHING = Nearest([], 0, None, None)


def nearest(
    user_id: UUID,
    *,
    base: Matrix | None,
    side: Matrix | None = None,
    top_k: int = 200,
    scope: Scope = EVERYTHING,
    head: Head | None = None,
) -> Nearest:
    """The user's occasions within a scope that are nearest to any of some clauses, about `top_k`, with their exact cosines.

    `base` and `side` are the clauses' unit vectors in the two spaces, a row each; None where a space cannot tell
    (of the bundled embedder, and `spaces.side_vectors`). Clauses of `side` alone come last. Only documents that are valid now are found. `head` as in `index_open`.
    """
    with phrases_open(user_id, head=head) as opened:
        if opened is None or not opened[1].living:
            return NOTHING
        head, phrases = opened
        allowed, size = phrases.allowed(scope, now=timezone.now()), phrases.size
        if not allowed.any():  # as of messages, which have no occasions
            return NOTHING
        looks = (
            _look(head.base, base, phrases.signs[:, :size], phrases.embedded[:size] & allowed),
            _look(head.side, side, phrases.side_signs[:, :size], phrases.side_embedded[:size] & allowed),
        )
        chosen, even = _choice(looks, np.flatnonzero(allowed), top_k)
        ids, documents = phrases.ids[chosen].tolist(), phrases.documents[chosen].tolist()
        number = int(np.count_nonzero(allowed))
    found = _measured(user_id, (head.base, head.side), looks, (chosen, even, ids, documents))
    return replace(found, number=number) if found.phrases else NOTHING


Measured = tuple[Nearness, Mask]
"""Nearness, and which of the phrases have no vector."""


@dataclass(frozen=True, slots=True)
class _Look:
    """In how many signs phrases differ from clauses in one space, (clauses, phrases), and how those that are `known`, in the
    scope and with a vector, differ on the whole, (clauses, 1)."""

    clauses: Matrix
    far: NDArray[np.uint16]
    known: Mask
    mean: Floats
    deviation: Floats

    def standing(self) -> Floats:
        """How far each phrase stands out as near to the clause that it is nearest to, in standard deviations."""
        best = ((self.mean - self.far) / np.maximum(self.deviation, np.float32(1e-6))).max(axis=0)
        best[~self.known] = -np.inf
        return np.asarray(best)

    def measured(self, places: Rows, even: Mask, vectors: Sequence[bytes | None]) -> Measured | None:
        """The exact cosines of the phrases at these places, and what the signs of all say of chance, on the line through
        those that are spread evenly."""
        dimension = self.clauses.shape[1]
        have = np.array([held is not None and len(held) == dimension * 2 for held in vectors])
        have &= self.known[places]
        if not have.any():
            return None
        packed = b"".join(held for held, one in zip(vectors, have, strict=True) if one and held)
        halves = np.frombuffer(packed, dtype="<f2").reshape(-1, dimension)
        cosines = np.zeros((len(self.clauses), len(places)), dtype=np.float32)
        cosines[:, have] = [products(halves, clause) for clause in self.clauses]
        sample = have & even if (have & even).any() else have
        signs, exact = self.far[:, places[sample]].astype(np.float32), cosines[:, sample]
        middle, level = signs.mean(axis=1, keepdims=True), exact.mean(axis=1, keepdims=True)
        spread = np.maximum(((signs - middle) ** 2).sum(axis=1, keepdims=True), np.float32(1e-6))
        slope = ((signs - middle) * (exact - level)).sum(axis=1, keepdims=True) / spread
        beside = np.var(exact - level - slope * (signs - middle), axis=1, keepdims=True)
        mean = level + slope * (self.mean - middle)
        deviation = np.sqrt((slope * self.deviation) ** 2 + beside)
        return Nearness(cosines, mean[:, 0], np.maximum(deviation[:, 0], np.float32(1e-6))), ~have


def _measured(
    user_id: UUID,
    spaces: tuple[Space, Space | None],
    looks: Sequence[_Look | None],
    chosen: tuple[Rows, Mask, list[int], list[int]],
) -> Nearest:
    """The chosen phrases (places, which are spread evenly, ids, documents) that are there still, with their exact cosines."""
    places, even, ids, documents = chosen
    rows = {row.id: row for row in backend.occasions_fetch(user_id, ids)}
    there = np.array([key in rows for key in ids], dtype=bool)
    places, even = places[there], even[there]
    found = [rows[key] for key in ids if key in rows]
    of_base, of_side = looks
    near_base = of_base.measured(places, even, [row.vector for row in found]) if of_base else None
    near_side = of_side.measured(places, even, [row.side_vector for row in found]) if of_side else None
    if near_side is not None and near_side[1].any() and spaces[1] is not None:
        _predict(near_base, near_side, (spaces[0], spaces[1]))
    return Nearest(
        [
            Phrase(key, document, rows[key].text, rows[key].source)
            for key, document in zip(ids, documents, strict=True)
            if key in rows
        ],
        len(found),
        near_base and near_base[0],
        near_side and near_side[0],
    )


def _look(space: Space | None, clauses: Matrix | None, signs: Signs, known: Mask) -> _Look | None:
    if space is None or clauses is None or not len(clauses) or not known.any():
        return None
    if clauses.shape[1] != space.dimension:
        return None
    far = np.stack([distances(signs, clause) for clause in clauses])
    among = far if known.all() else far[:, known]
    mean = among.mean(axis=1, dtype=np.float32, keepdims=True)
    return _Look(clauses, far, known, mean, among.std(axis=1, dtype=np.float32, keepdims=True))


def _choice(looks: Sequence[_Look | None], allowed: Rows, top_k: int) -> tuple[Rows, Mask]:
    """The places of the phrases that stand out most in any space, and of some spread evenly over those allowed, and which
    those are."""
    standings = [look.standing() for look in looks if look is not None]
    if not standings:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=bool)
    even = allowed[:: -(-len(allowed) // SAMPLE)]
    if len(allowed) <= top_k + len(even):
        return allowed, np.ones(len(allowed), dtype=bool)
    best = standings[0] if len(standings) == 1 else np.maximum(*standings)
    places = np.union1d(np.argpartition(-best, top_k)[:top_k], even)
    return places, np.isin(places, even, assume_unique=True)


def _predict(base: Measured | None, side: Measured, spaces: tuple[Space, Space]) -> None:
    """Fill in the side cosines of phrases that wait, by those that have both; of clauses of the side alone, by the first's."""
    (near, waits), cosines = side, side[0].cosines
    for number in range(len(cosines)):
        if base is None:
            cosines[number, waits] = near.mean[number]
            continue
        rows = base[0].cosines
        own, both = rows[number if number < len(rows) else 0], ~waits & ~base[1]
        cosines[number, waits] = predicted(own[waits], own[both], cosines[number, both], spaces)
