"""A quarter-size copy of a large user's vectors for a fast first look (the optional extra `fast`).

Each row is scaled to 8-bit integers; numkong's SIMD product reads a quarter of the memory. The best rows are then
measured exactly, so that order and thresholds stay what they would be without it.
"""

from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

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
            rows[: self.known], scales[: self.known] = self._rows[: self.known], self._scales[: self.known]
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
