"""One user's passages as arrays: vectors, features, neighbours, postings.

Neighbours are the passages of one sitting in their order; a long silence ends a sitting. A turn is often understood only
with those around it ("Which one?" - "The red one."), so ranking spreads what a passage says over its neighbours. Sittings
with a single passage (most notes) have none and cost nothing here.
"""

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.search import features
from apps.search.backends import Batch, Head, Stem, backend
from apps.search.documents import Source
from apps.search.features import Flag
from apps.search.index.side import SideVectors

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

QUESTION_PRIOR = -0.2
LENGTH_PRIOR = 0.2
NOTE_TERMS = 20
"""A note is ranked as if it had this many stems: being short is no fault in what was written to be kept."""

MAX_POSTINGS = 4000
"""Stems whose rows are held; of more the one asked for longest ago goes. Without a bound each new word asked would stay."""

OFFSETS = (-4, -3, -2, -1, 1, 2, 3, 4)
TERM_KERNEL = (0.5, 0.5, 1.0, 1.5, 1.0, 1.0, 0.5, 0.5)
"""Weight of a term in the passage at each offset, beside TERM_SELF for the passage's own."""
TERM_SELF = 3.0
MEANING_KERNEL = (0.0, 0.0, 1.0, 2.0, 2.0, 1.0, 0.0, 0.0)
"""The same for similarity of meaning, beside MEANING_SELF; the sum is divided by the weights of those present."""
MEANING_SELF = 3.0
BEFORE = OFFSETS.index(-1)
SILENCE_SECONDS = 6 * 3600.0

_TERM = np.array(TERM_KERNEL, dtype=np.float32)
_MEANING = np.array(MEANING_KERNEL, dtype=np.float32)


class UserRows:
    """Rows are only ever appended or marked dead. The arrays hold `size` rows of a larger capacity.

    `change` is the newest change taken in. `postings` hold the rows of stems that were asked for and are there.
    """

    def __init__(self, head: Head, batch: Batch) -> None:
        self.owner = head.owner
        self.base, self.side_space = head.base, head.side
        self.change = head.change
        self.size = 0
        self.dead = 0
        self.ascending = True
        self._order: Rows | None = None
        self._posted_bytes = 0
        self.bounded = False
        self.postings: dict[str, Rows] = {}
        self.names: set[int] = set()
        self.languages: dict[int, int] = {}
        self.coarse: CoarseVectors | None = None
        self.side: SideVectors | None = None  # from the first row on that has one
        self._allocate(len(batch.ids) + len(batch.ids) // 8 + 32)
        self.neighbours = Neighbours(self.capacity)
        self._append(batch)

    def _allocate(self, capacity: int) -> None:
        self.capacity = capacity
        self.ids = np.zeros(capacity, dtype=np.int64)
        self.features = np.zeros(capacity, dtype=features.DTYPE)
        self.vectors = np.empty((capacity, self.base.dimension), dtype=np.float32)
        self.alive = np.zeros(capacity, dtype=bool)
        self.embedded = np.zeros(capacity, dtype=bool)
        self.prior = np.zeros(capacity, dtype=np.float32)

    def _arrays(self) -> tuple[NDArray[np.generic], ...]:
        return (self.ids, self.features, self.vectors, self.alive, self.embedded, self.prior)

    def _grow(self, needed: int) -> None:
        old = self._arrays()
        self._allocate(needed + needed // 2 + 32)
        for target, source in zip(self._arrays(), old, strict=True):
            target[: self.size] = source[: self.size]
        self.neighbours.grow(self.capacity)
        if self.side is not None:
            self.side.grow(self.capacity)

    @property
    def bytes(self) -> int:
        more = sum(each.bytes for each in (self.coarse, self.side) if each is not None)
        around = [value for value in vars(self.neighbours).values() if isinstance(value, np.ndarray)]
        return sum(array.nbytes for array in [*self._arrays(), *around]) + self._posted_bytes + more

    @property
    def living(self) -> int:
        return self.size - self.dead

    def take(self, batch: Batch, removed: NDArray[np.int64], change: int) -> None:
        """Bring the rows up to `change`. Passages already held are taken again for their vectors alone."""
        self._kill(self._places(removed))
        places = self._places(batch.ids)
        held = places >= 0
        if held.any():
            self._take_vectors(places[held], batch.only(held))
        new = ~held & ~np.isin(batch.ids, removed)
        self._append(batch if new.all() else batch.only(new))
        self.change = change

    def _take_vectors(self, places: Rows, batch: Batch) -> None:
        if (self.vectors[places] != batch.vectors).any():
            self.coarse = None
        self.vectors[places] = batch.vectors
        self.embedded[places] = batch.embedded
        self._take_sides(places, batch)

    def _take_sides(self, places: Rows, batch: Batch) -> None:
        if self.side is None and len(batch.side_places) and self.side_space is not None:
            self.side = SideVectors(self.side_space, self.capacity)
        if self.side is not None:
            self.side.put(places[batch.side_places], batch.sides)

    def _append(self, batch: Batch) -> None:
        start, end = self.size, self.size + len(batch.ids)
        if start == end:
            return
        if end > self.capacity:
            self._grow(end)
        last = self.ids[start - 1] if start else 0
        self.ascending = self.ascending and bool(batch.ids[0] > last and (np.diff(batch.ids) > 0).all())
        self.ids[start:end] = batch.ids
        self.features[start:end] = batch.features
        self.vectors[start:end] = batch.vectors
        self.alive[start:end] = True
        self.embedded[start:end] = batch.embedded
        self._take_sides(np.arange(start, end), batch)
        # What speaks for a passage whatever the question: saying much, not asking. The same for all notes.
        spoken = batch.features["source"] == features.SOURCE_CODES[Source.CONVERSATION]
        terms = np.where(spoken, batch.features["length"], NOTE_TERMS)
        asks = spoken & ((batch.features["flags"] & Flag.QUESTION) > 0)
        self.prior[start:end] = LENGTH_PRIOR * np.log1p(terms) + QUESTION_PRIOR * asks
        self.size = end
        self._order = None
        self.neighbours.link(self.features[:end], np.arange(start, end), self.alive[:end])
        self._note(batch.features)
        added: dict[str, list[int]] = {}  # to those postings that are held
        for row, text in enumerate(batch.terms or [], start):
            for term in text.split():
                if term in self.postings:
                    added.setdefault(term, []).append(row)
        for term, places in added.items():
            self._hold(term, np.concatenate([self.postings[term], np.array(places, dtype=np.int64)]))

    def _note(self, rows: NDArray[np.void]) -> None:
        """Remember which names and languages there are, and whether anything is valid for a time only."""
        for column in ("first_name", "last_name"):
            self.names.update(np.unique(rows[column]).tolist())
        self.names.discard(0)
        codes, counts = np.unique(rows["language"], return_counts=True)
        for code, number in zip(codes.tolist(), counts.tolist(), strict=True):
            self.languages[code] = self.languages.get(code, 0) + number
        limits = np.isfinite(rows["valid_from"]) | np.isfinite(rows["valid_to"])
        self.bounded = self.bounded or bool(limits.any())

    def _hold(self, term: str, rows: Rows) -> None:
        """Keep the rows of a stem as the one asked for last."""
        self._drop(term)
        while len(self.postings) >= MAX_POSTINGS:
            self._drop(next(iter(self.postings)))
        self.postings[term] = rows
        self._posted_bytes += rows.nbytes

    def _drop(self, term: str) -> None:
        held = self.postings.pop(term, None)
        if held is not None:
            self._posted_bytes -= held.nbytes

    def _kill(self, places: Rows) -> None:
        """Mark rows dead; nothing of what they said stays in memory: neither a vector nor a stem that was theirs alone."""
        rows = places[places >= 0]
        rows = rows[self.alive[rows]]
        if not len(rows):
            return
        self.alive[rows] = False
        self.dead += len(rows)
        self.neighbours.link(self.features[: self.size], rows, self.alive[: self.size])
        self.vectors[rows] = 0
        self.embedded[rows] = False
        for each in (self.coarse, self.side):
            if each is not None:
                each.wipe(rows)
        for term in [term for term, held in self.postings.items() if not self.alive[held].any()]:
            self._drop(term)

    def _places(self, ids: NDArray[np.int64]) -> Rows:
        """The rows that hold passages, -1 where none does."""
        known = self.ids[: self.size]
        if not len(ids) or not self.size:
            return np.full(len(ids), -1, dtype=np.int64)
        if self.ascending:
            rows = np.minimum(np.searchsorted(known, ids), self.size - 1)
        else:
            if self._order is None:
                self._order = np.argsort(known, kind="stable")
            order = self._order
            rows = order[np.minimum(np.searchsorted(known, ids, sorter=order), self.size - 1)]
        return np.where(known[rows] == ids, rows, -1)

    def cosines(self, query: Floats) -> Floats:
        """The cosine of each row with a unit query in the base space, (size,)."""
        vectors = self.vectors[: self.size]
        if self.size < COARSE_FROM or engine() is None:
            return vectors @ query
        if self.coarse is None:
            self.coarse = CoarseVectors(self.base.dimension)
        self.coarse.follow(self.vectors, self.size)
        return self.coarse.cosines(vectors, query)

    def side_cosines(self, query: Floats, base: Floats | None, among: Mask) -> Floats | None:
        """The same in the side space: near for all and exact for the nearest of `among`; None where none of those has a vector.

        A row that waits for its vector has what its cosine in `base` predicts.
        """
        if self.side is None:
            return None
        return self.side.cosines(query, base, self.base, among)

    def posted(self, term: str, *, prefix: bool = False) -> Rows:
        """Rows of living passages with a stem, ascending; read from full text once, then kept up to date.

        What is not there is not remembered: a question's words do not stay in memory because they were asked for.
        """
        rows = self.postings.pop(term, None) if not prefix else None
        if rows is not None:
            self.postings[term] = rows  # the last one now
        else:
            places = self._places(backend.postings(self.owner, Stem(term, prefix)))
            rows = np.sort(places[places >= 0])
            if len(rows) and not prefix:
                self._hold(term, rows)
        return rows[self.alive[rows]] if self.dead else rows


class Neighbours:
    """`table[:, row]` holds the rows at OFFSETS, -1 where there is none. `sitting[row]` numbers the sitting, -1: alone.

    `spread_length[row]` is the number of stems that its kernel reaches, weighted; `meaning_mass[row]` the sum of
    weights of those present. `linked` are the rows that have any neighbour, `linked_sittings` their sittings; `replies`
    the rows that come right after a question, `asked` those questions.
    """

    def __init__(self, capacity: int) -> None:
        self.table = np.full((len(OFFSETS), capacity), -1, dtype=np.int64)
        self.sitting = np.full(capacity, -1, dtype=np.int64)
        self.spread_length = np.zeros(capacity, dtype=np.float32)
        self.meaning_mass = np.full(capacity, MEANING_SELF, dtype=np.float32)
        self.linked = self.linked_sittings = self.replies = self.asked = np.zeros(0, dtype=np.int64)
        self.sitting_lengths = np.zeros(0, dtype=np.float32)
        self._numbers: dict[tuple[int, int], int] = {}

    def grow(self, capacity: int) -> None:
        more = (0, capacity - len(self.sitting))
        self.table = np.pad(self.table, ((0, 0), more), constant_values=-1)
        self.sitting = np.pad(self.sitting, more, constant_values=-1)
        self.spread_length = np.pad(self.spread_length, more)
        self.meaning_mass = np.pad(self.meaning_mass, more, constant_values=MEANING_SELF)

    def link(self, rows: NDArray[np.void], touched: NDArray[np.int64], alive: NDArray[np.bool_]) -> None:
        """Set anew the neighbours in all sittings that `touched` rows belong to; `rows` are all features."""
        self.spread_length[touched] = TERM_SELF * rows["length"][touched]
        members = _members(rows, touched)
        if not len(members):
            return
        self.table[:, members] = -1
        self.sitting[members] = -1
        members = members[alive[members]]
        members = members[np.lexsort((rows["order"][members], rows["session"][members]))]
        groups = self._number(members, rows)
        for distance in range(1, OFFSETS[-1] + 1):
            same = np.flatnonzero(groups[distance:] == groups[:-distance])
            self.table[OFFSETS.index(distance), members[same]] = members[same + distance]
            self.table[OFFSETS.index(-distance), members[same + distance]] = members[same]
        table = self.table[:, members]
        present = table >= 0
        around = np.where(present, rows["length"][table], 0).astype(np.float32)
        self.spread_length[members] = TERM_SELF * rows["length"][members] + _TERM @ around
        self.meaning_mass[members] = MEANING_SELF + _MEANING @ present.astype(np.float32)
        # Spares queries a look-up row by row. A row with neighbours has one right before or after.
        before, after = self.table[BEFORE, : len(rows)], self.table[BEFORE + 1, : len(rows)]
        self.linked = np.flatnonzero((before >= 0) | (after >= 0))
        self.linked_sittings = self.sitting[self.linked]
        follows = np.flatnonzero(before >= 0)
        asks = (rows["flags"][before[follows]] & Flag.QUESTION) > 0
        self.replies = follows[asks]
        self.asked = before[self.replies]

    def _number(self, members: NDArray[np.int64], rows: NDArray[np.void]) -> NDArray[np.int64]:
        """Number the sittings of ordered members; returns, per member, which group of this call it belongs to."""
        session, happened = rows["session"][members], rows["happened"][members]
        opens = np.ones(len(members), dtype=bool)
        opens[1:] = (session[1:] != session[:-1]) | (np.abs(np.diff(happened)) > SILENCE_SECONDS)
        groups = np.cumsum(opens) - 1
        first = np.flatnonzero(opens)
        keys: list[tuple[int, int]] = []  # (session, number of the sitting within it)
        for each in session[first].tolist():
            follows = bool(keys) and keys[-1][0] == each
            keys.append((each, keys[-1][1] + 1 if follows else 0))
        known = self._numbers
        numbers = np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int32)
        sizes = np.bincount(groups, minlength=len(first))
        self.sitting[members] = np.where(sizes[groups] > 1, numbers[groups], -1)
        missing = len(known) - len(self.sitting_lengths)
        self.sitting_lengths = np.concatenate(
            [self.sitting_lengths, np.zeros(missing, dtype=np.float32)]
        )
        lengths = np.bincount(groups, weights=rows["length"][members], minlength=len(first))
        self.sitting_lengths[numbers] = np.where(sizes > 1, lengths, 0)
        return np.asarray(groups)

    def spread_meaning(self, similarity: Floats) -> Floats:
        """The similarity of each row blended with its neighbours'; (n,) in and out."""
        if not len(self.linked):
            return similarity
        size = len(similarity)
        padded = np.append(similarity, np.float32(0))
        total = np.float32(MEANING_SELF) * similarity
        for column, weight in enumerate(MEANING_KERNEL):
            if weight:
                total += (
                    np.float32(weight) * padded[self.table[column, :size]]
                )  # -1, nobody, is the zero at the end
        total /= self.meaning_mass[:size]
        return total


def _members(rows: NDArray[np.void], touched: NDArray[np.int64]) -> NDArray[np.int64]:
    """All rows of the sittings of those touched rows that can have company, ascending."""
    part = (rows["order"][touched] & 0xFFFF) > 0
    talked = rows["conversation"][touched] != 0
    social = touched[part | talked]
    if not len(social):
        return np.asarray(social)
    sessions = np.unique(rows["session"][social])
    if len(touched) == len(rows) and talked.all():
        return touched
    if len(sessions) == 1:
        return np.asarray(np.flatnonzero(rows["session"] == sessions[0]))
    return np.asarray(np.flatnonzero(np.isin(rows["session"], sessions)))


COARSE_FROM = 20_000
"""Passages from which the copy pays."""
EXACT = 200  # best rows that are measured exactly
_STEP = 8192


@cache
def engine() -> Any:
    """The numkong module, None where the extra is not installed."""
    if find_spec("numkong") is None:
        return None
    import numkong

    return numkong


class CoarseVectors:
    """8-bit rows with their scales; `known` rows have been taken over so far."""

    def __init__(self, dimension: int) -> None:
        self.known = 0
        self._rows = np.zeros((0, dimension), dtype=np.int8)
        self._scales = np.zeros(0, dtype=np.float32)

    @property
    def bytes(self) -> int:
        return self._rows.nbytes + self._scales.nbytes

    def follow(self, vectors: Floats, size: int) -> None:
        """Take over the rows from `known` to `size`."""
        if size > len(self._rows):
            rows = np.zeros((len(vectors), vectors.shape[1]), dtype=np.int8)
            scales = np.zeros(len(vectors), dtype=np.float32)
            rows[: self.known], scales[: self.known] = (
                self._rows[: self.known],
                self._scales[: self.known],
            )
            self._rows, self._scales = rows, scales
        for start in range(self.known, size, _STEP):
            end = min(start + _STEP, size)
            self._rows[start:end], self._scales[start:end] = _quantised(vectors[start:end])
        self.known = size

    def wipe(self, rows: NDArray[np.int64]) -> None:
        """Forget some rows; their cosine is 0 from now on."""
        self._rows[rows[rows < self.known]] = 0

    def cosines(self, vectors: Floats, query: Floats) -> Floats:
        """The cosine of each known row with a unit query: near for all, exact for the best."""
        quantised, scale = _quantised(query[None])
        products = engine().cdist(quantised, self._rows[: self.known], "dot")
        result = np.asarray(products)[0].astype(np.float32)
        result *= self._scales[: self.known]
        result *= scale[0]
        best = np.argpartition(result, -EXACT)[-EXACT:]
        result[best] = vectors[best] @ query
        return np.asarray(result)


def _quantised(vectors: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Rows as 8-bit integers and the factors that bring them back."""
    largest = np.maximum(np.abs(vectors).max(axis=1), np.float32(1e-9))
    factors = np.asarray(127 / largest, dtype=np.float32)
    return np.rint(vectors * factors[:, None]).astype(np.int8), np.asarray(1 / factors, dtype=np.float32)
