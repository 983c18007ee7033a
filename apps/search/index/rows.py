"""One user's passages as arrays: vectors, features, neighbours, postings."""

from collections.abc import Iterable
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.search import features
from apps.search.backends import Batch, Head, Stem, backend
from apps.search.documents import Scope, Source
from apps.search.features import Flag
from apps.search.index.neighbours import Neighbours
from apps.search.index.side import SideVectors
from apps.search.text.analysis import detect_language

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

QUESTION_PRIOR = -0.2
LENGTH_PRIOR = 0.2
NOTE_TERMS = 20
"""A note is ranked as if it had this many stems: being short is no fault in what was written to be kept."""

LANGUAGE_SHARE = 50
"""A language counts among an owner's when at least one passage in this many is written in it."""
MAX_POSTINGS = 4000
"""Stems whose rows are held; of more the one asked for longest ago goes. Without a bound each new word asked would stay."""


class UserRows:
    """Rows are only ever appended or marked dead. The arrays hold `size` rows of a larger capacity.

    `change` is the newest change taken in. `postings` hold the rows of stems that were asked for and are there.
    """

    def __init__(self, head: Head, batch: Batch) -> None:
        self.owner = head.owner
        self.base, self.side_space = head.base, head.side
        self.change = head.change
        self.size = self.living = 0
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

    _ARRAYS = ("ids", "features", "vectors", "alive", "embedded", "prior")

    def _grow(self, needed: int) -> None:
        old = {name: getattr(self, name) for name in self._ARRAYS}
        self._allocate(needed + needed // 2 + 32)
        for name, array in old.items():
            getattr(self, name)[: self.size] = array[: self.size]
        self.neighbours.grow(self.capacity)
        if self.side is not None:
            self.side.grow(self.capacity)

    @property
    def bytes(self) -> int:
        more = sum(each.bytes for each in (self.coarse, self.side) if each is not None)
        around = [value for value in vars(self.neighbours).values() if isinstance(value, np.ndarray)]
        own: list[NDArray[np.generic]] = [getattr(self, name) for name in self._ARRAYS]
        return sum(array.nbytes for array in [*own, *around]) + self._posted_bytes + more

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
        if len(batch.side_places):
            self._take_sides(places, batch)

    def _take_sides(self, places: Rows, batch: Batch) -> None:
        if self.side is None and self.side_space is not None:
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
        if len(batch.side_places):
            self._take_sides(np.arange(start, end), batch)
        # What speaks for a passage whatever the question: saying much, not asking. The same for all notes.
        spoken = batch.features["source"] == features.SOURCE_CODES[Source.CONVERSATION]
        terms = np.where(spoken, batch.features["length"], NOTE_TERMS)
        asks = spoken & ((batch.features["flags"] & Flag.QUESTION) > 0)
        self.prior[start:end] = LENGTH_PRIOR * np.log1p(terms) + QUESTION_PRIOR * asks
        self.size, self.living = end, self.living + end - start
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
        self.living -= len(rows)
        self.neighbours.link(self.features[: self.size], rows, self.alive[: self.size])
        self.vectors[rows] = 0
        self.embedded[rows] = False
        for each in (self.coarse, self.side):
            if each is not None:
                each.wipe(rows)
        for term in [term for term, held in self.postings.items() if not self.alive[held].any()]:
            self._drop(term)
        self._forget_names(rows)

    def _forget_names(self, rows: Rows) -> None:
        """Take the speakers of these dead rows that speak in no other for words like any others."""
        first, last = self.features["first_name"], self.features["last_name"]
        living, size = self.alive[: self.size], self.size
        for name in {*first[rows].tolist(), *last[rows].tolist()} & self.names:
            if not (living & ((first[:size] == name) | (last[:size] == name))).any():
                self.names.discard(name)

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

    def allowed(self, scope: Scope, *, now: datetime) -> Mask:
        """A new (size,) mask: living rows within the scope, valid at its moment."""
        facts = self.features[: self.size]
        mask: Mask = self.alive[: self.size].copy()
        if scope.sources is not None:
            kinds = facts["source"]
            mask &= np.logical_or.reduce(
                [kinds == features.SOURCE_CODES[source] for source in scope.sources]
            )
        if scope.conversation_id is not None:
            mask &= facts["conversation"] == np.uint64(features.uuid_hash(scope.conversation_id.bytes))
        if scope.only_ids is not None:
            mask &= features.of_documents(facts["document"], scope.only_ids)
        if scope.exclude_ids:
            mask &= ~features.of_documents(facts["document"], scope.exclude_ids)
        moment = (scope.as_of or now).timestamp()
        if scope.as_of is not None:
            mask &= (facts["happened"] <= moment) | np.isfinite(facts["valid_from"])
        if self.bounded:
            mask &= (facts["valid_from"] <= moment) & (moment < facts["valid_to"])
        return mask

    def languages_of(self, text: str) -> list[str]:
        """The languages that the owner writes in, and the text's own where they ever wrote in it: a short question tells little."""
        codes = [code for code, number in self.languages.items() if number * LANGUAGE_SHARE >= self.size]
        common = {code.to_bytes(2, "little").rstrip(b"\0").decode("ascii", "replace") for code in codes}
        if not common:
            return [detect_language(text)]
        if len(codes) < len(self.languages):
            own = detect_language(text)
            if int.from_bytes(own.encode(), "little") in self.languages:
                common.add(own)
        return sorted(common)

    def cosines(self, query: Floats, among: Mask | None = None) -> Floats:
        """The cosine of each row with a unit query in the base space, (size,); where few are asked for `among` them, 0 for the others."""
        vectors = self.vectors[: self.size]
        if among is not None and np.count_nonzero(among) * FEW < self.size:
            found = np.zeros(self.size, dtype=np.float32)
            found[among] = vectors[among] @ query
            return found
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

    def posted(self, terms: Iterable[str]) -> dict[str, Rows]:
        """Rows of living passages with each of some stems, ascending; those not held are read from full text together, and
        kept up to date from then on.

        What is not there is not remembered: a question's words do not stay in memory because they were asked for.
        """
        wanted = dict.fromkeys(terms)
        found = {term: self.postings.pop(term) for term in wanted if term in self.postings}
        self.postings.update(found)  # the last ones now
        new = [term for term in wanted if term not in found]
        read = backend.postings(self.owner, list(map(Stem, new)))
        for term, ids in zip(new, read, strict=True):
            found[term] = rows = self._rows_of(ids)
            if len(rows):
                self._hold(term, rows)
        if self.living < self.size:
            return {term: rows[self.alive[rows]] for term, rows in found.items()}
        return found

    def begun(self, beginning: str) -> Rows:
        """Rows of living passages with a stem that begins so, ascending; read from full text each time."""
        (ids,) = backend.postings(self.owner, [Stem(beginning, prefix=True)])
        rows = self._rows_of(ids)
        return rows[self.alive[rows]]

    def _rows_of(self, ids: Rows) -> Rows:
        places = self._places(ids)
        return np.sort(places[places >= 0])


FEW = 20
"""Of one row in so many it is quicker to copy the vectors than to look at all."""
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
