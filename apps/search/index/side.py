"""The side vectors of one user's rows: half precision, and their signs for a first look at many."""

import numpy as np
from numpy.typing import NDArray

from apps.search.backends import Space
from apps.search.index.signs import Floats, distances, line_through, pack_signs, products, words_for

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

EXACT = 1000
"""Rows of fewest different signs, which are measured exactly; of the others the cosine is estimated."""
SAMPLE = 256
"""Rows, spread evenly, that are measured to estimate the others by."""
FEW = 32
"""With fewer rows that have both vectors, what one says of the other is read off the two calibrations."""


class SideVectors:
    """`embedded` says which rows have a vector; those of zeros, which the encoder refused, have none."""

    def __init__(self, space: Space, capacity: int) -> None:
        self.space = space
        self.vectors = np.zeros((capacity, space.dimension), dtype=np.float16)
        self.signs = np.zeros((words_for(space.dimension), capacity), dtype=np.uint64)
        self.embedded = np.zeros(capacity, dtype=bool)

    @property
    def bytes(self) -> int:
        return self.vectors.nbytes + self.signs.nbytes + self.embedded.nbytes

    def grow(self, capacity: int) -> None:
        more = (0, capacity - len(self.embedded))
        self.vectors = np.pad(self.vectors, (more, (0, 0)))
        self.signs = np.pad(self.signs, ((0, 0), more))
        self.embedded = np.pad(self.embedded, more)

    def put(self, rows: Rows, vectors: NDArray[np.float16]) -> None:
        self.vectors[rows] = vectors
        self.signs[:, rows] = pack_signs(vectors)
        self.embedded[rows] = vectors.any(axis=1)

    def wipe(self, rows: Rows) -> None:
        self.vectors[rows] = 0
        self.signs[:, rows] = 0
        self.embedded[rows] = False

    def _measured(self, rows: Rows, query: Floats) -> Floats:
        return products(self.vectors[rows], query)

    def cosines(
        self, query: Floats, base: Floats | None, base_space: Space, among: Mask
    ) -> Floats | None:
        """The cosine of each row with a unit query, (len(among),), None where no row of `among` has a vector.

        It is exact for the nearest of `among` and estimated by signs for the others; where a row has no vector it is
        what the cosine `base` in the base space predicts.
        """
        size = len(among)
        embedded = self.embedded[:size]
        inside = embedded & among
        if not inside.any():
            return None
        rows = np.flatnonzero(embedded)
        sample = rows[:: -(-len(rows) // SAMPLE)]
        if len(rows) <= EXACT + SAMPLE:
            result = np.zeros(size, dtype=np.float32)
            result[rows] = self._measured(rows, query)
        else:
            far = distances(self.signs[:, :size], query)
            hidden = np.where(inside, far, np.iinfo(np.uint16).max)
            near = np.argpartition(hidden, EXACT)[:EXACT]
            rows = np.union1d(near[inside[near]], sample)
            exact = self._measured(rows, query)
            even = np.isin(rows, sample, assume_unique=True)  # the nearest alone would tell too much
            slope, offset = line_through(far[sample], exact[even])
            result = far * np.float32(slope) + np.float32(offset)
            result[rows] = exact
        if not embedded.all():
            waits = np.flatnonzero(~embedded)
            result[waits] = _predicted(base, result, sample, waits, (base_space, self.space))
        return result


def _predicted(
    base: Floats | None, side: Floats, sample: Rows, waits: Rows, spaces: tuple[Space, Space]
) -> Floats:
    """The cosines that waiting rows would have in the side space, by what the `sample` measures in both."""
    if base is None:
        return np.full(len(waits), side[sample].mean(), dtype=np.float32)
    return predicted(base[waits], base[sample], side[sample], spaces)


def predicted(
    base: Floats, base_sample: Floats, side_sample: Floats, spaces: tuple[Space, Space]
) -> Floats:
    """The cosines in the side space that cosines in the base space predict, given a sample measured in both."""
    if len(base_sample) >= FEW:
        slope, offset = line_through(base_sample, side_sample)
    else:
        one, two = spaces
        slope = (two.match - two.noise) / max(one.match - one.noise, 1e-6)
        offset = two.noise - slope * one.noise
    return np.asarray(base * np.float32(slope) + np.float32(offset))
