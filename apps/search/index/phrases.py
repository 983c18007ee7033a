"""The occasions of one user's documents as arrays: signs of their vectors, and what they belong to.

About 90 bytes a phrase, so that proactive recall can look at all of them; the vectors themselves stay in the database.
"""

from collections.abc import Iterable
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from apps.search.backends import Batch, Head
from apps.search.documents import Scope
from apps.search.features import SOURCE_CODES, of_documents
from apps.search.index.signs import pack_signs, words_for

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Phrases:
    """Phrases are only ever appended or marked dead (id 0). The arrays hold `size` of them in a somewhat larger capacity.

    `limits` are the times of validity of those that are not valid for good from the time they were read on.
    """

    def __init__(self, head: Head, batches: Iterable[Batch], *, now: datetime) -> None:
        self.owner, self.change = head.owner, head.change
        self.base, self.side_space = head.base, head.side
        self.size = self.living = self.bytes = 0
        self.limits: dict[int, tuple[float, float]] = {}
        side_words = words_for(head.side.dimension) if head.side else 0
        self.ids = np.zeros(0, dtype=np.uint32)
        self.documents = np.zeros(0, dtype=np.uint64)
        self.sources = np.zeros(0, dtype=np.uint8)
        self.embedded = np.zeros(0, dtype=bool)
        self.side_embedded = np.zeros(0, dtype=bool)
        self.signs = np.zeros((words_for(head.base.dimension), 0), dtype=np.uint64)
        self.side_signs = np.zeros((side_words, 0), dtype=np.uint64)
        for batch in batches:
            self._append(batch, now)

    _ARRAYS = ("ids", "documents", "sources", "embedded", "side_embedded", "signs", "side_signs")

    def take(self, batches: Iterable[Batch], removed: Rows, change: int, *, now: datetime) -> None:
        """Bring the phrases up to `change`. Those already held are taken again for their vectors alone."""
        self._kill(removed)
        for batch in batches:
            places = self._places(batch.ids)
            held = places >= 0
            self._take_vectors(places[held], batch.only(held))
            self._append(batch.only(~held & ~np.isin(batch.ids, removed)), now)
        self.change = change

    def _append(self, batch: Batch, now: datetime) -> None:
        start, end = self.size, self.size + len(batch.ids)
        if start == end:
            return
        if batch.ids.max() > np.iinfo(self.ids.dtype).max:
            self.ids = self.ids.astype(np.uint64)
        if end > len(self.ids):
            more = (0, end + end // 32 - len(self.ids))
            for name in self._ARRAYS:
                array = getattr(self, name)
                setattr(self, name, np.pad(array, [(0, 0)] * (array.ndim - 1) + [more]))
        self.bytes = sum(getattr(self, name).nbytes for name in self._ARRAYS)
        self.ids[start:end] = batch.ids
        self.documents[start:end] = batch.features["document"]
        self.sources[start:end] = batch.features["source"]
        self.size, self.living = end, self.living + end - start
        self._take_vectors(np.arange(start, end), batch)
        since, until = batch.features["valid_from"], batch.features["valid_to"]
        for place in np.flatnonzero((since > now.timestamp()) | np.isfinite(until)).tolist():
            self.limits[start + place] = float(since[place]), float(until[place])

    def _take_vectors(self, places: Rows, batch: Batch) -> None:
        self.signs[:, places] = pack_signs(batch.vectors)
        self.embedded[places] = batch.embedded
        if len(batch.side_places):
            sided = places[batch.side_places]
            self.side_signs[:, sided] = pack_signs(batch.sides)
            self.side_embedded[sided] = batch.sides.any(axis=1)

    def _kill(self, ids: Rows) -> None:
        """Mark phrases dead; nothing of what they said stays in memory."""
        places = self._places(ids)
        places = places[places >= 0]
        self.living -= len(places)
        for name in self._ARRAYS:
            getattr(self, name)[..., places] = 0
        for place in places.tolist():
            self.limits.pop(place, None)

    def _places(self, ids: Rows) -> Rows:
        """The places of passages, -1 where none holds one."""
        known = self.ids[: self.size]
        found = np.flatnonzero(np.isin(known, ids))
        order = found[np.argsort(known[found], kind="stable")]
        places = np.full(len(ids), -1, dtype=np.int64)
        if len(order):
            nearest = order[np.minimum(np.searchsorted(known[order], ids), len(order) - 1)]
            places = np.where(known[nearest] == ids, nearest, -1)
        return places

    def allowed(self, scope: Scope, *, now: datetime) -> Mask:
        """A new (size,) mask: living phrases of documents within the scope that are valid now."""
        documents, moment = self.documents[: self.size], now.timestamp()
        mask: Mask = self.ids[: self.size] > 0
        if scope.sources is not None:
            kinds = self.sources[: self.size]
            mask &= np.logical_or.reduce([kinds == SOURCE_CODES[source] for source in scope.sources])
            if not mask.any():  # conversations have none
                return mask
        if scope.only_ids is not None:
            mask &= of_documents(documents, scope.only_ids)
        if scope.exclude_ids:
            mask &= ~of_documents(documents, scope.exclude_ids)
        for place, (since, until) in self.limits.items():
            mask[place] &= since <= moment < until
        return mask
