"""Signs of vectors, a bit a dimension: a first look at many vectors that costs a fraction of their product.

Two vectors with few different signs have a high cosine. How high, a line through some that are measured exactly tells.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Signs = NDArray[np.uint64]
Counts = NDArray[np.uint16]
_WORD = 64


def words_for(dimension: int) -> int:
    """How many numbers of 64 bits hold the signs of one vector."""
    return -(-dimension // _WORD)


def pack_signs(vectors: NDArray[np.floating]) -> Signs:
    """The signs of (n, dimension) vectors, (words, n): a row for 64 dimensions, so that each is read in one go."""
    bits = np.packbits(vectors > 0, axis=1)
    packed = np.zeros((len(vectors), words_for(vectors.shape[1]) * 8), dtype=np.uint8)
    packed[:, : bits.shape[1]] = bits
    return np.ascontiguousarray(packed.view(np.uint64).T)


def distances(signs: Signs, query: Floats) -> Counts:
    """In how many signs each vector differs from a query (n,)."""
    asked = pack_signs(query[None])[:, 0]
    total = np.zeros(signs.shape[1], dtype=np.uint16)
    for word, own in zip(signs, asked, strict=True):
        total += np.bitwise_count(word ^ own)
    return total


_SCALE = np.float32(2.0**112)
_KEPT = np.int32(-0x70002000)


def products(halves: NDArray[np.float16], query: Floats) -> Floats:
    """The products of finite half-precision rows with a query, (n,).

    Numpy converts numbers one by one. Here the bits of all are moved to where single precision has sign, exponent and fraction;
    that the exponent is 112 too small then, the query makes up for.
    """
    bits = halves.view(np.int16).astype(np.int32)
    bits <<= 13
    bits &= _KEPT  # of the sign, which has come along thirteen times, one is left
    return np.asarray(bits.view(np.float32) @ (query * _SCALE))


def line_through(x: NDArray[np.number], y: NDArray[np.number]) -> tuple[float, float]:
    """Slope and offset of the line that says best what `y` is where `x` is known (least squares); flat where x is one value."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    mean, level = x.mean(), y.mean()
    spread = float(((x - mean) ** 2).sum())
    slope = float(((x - mean) * (y - level)).sum()) / spread if spread > 1e-12 else 0.0
    return slope, float(level - slope * mean)
