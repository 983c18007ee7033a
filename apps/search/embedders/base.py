"""The contract of an embedder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from apps.core.errors import Unavailable

Vector = NDArray[np.float32]
Matrix = NDArray[np.float32]


class EmbedderDown(Unavailable):
    """The embedder cannot answer now; what waits for it is done later."""

    default_code = "embedder_down"


class EmbedderMissing(EmbedderDown):
    """A package that the embedder needs is not installed; the message says how to get it."""

    default_code = "embedder_missing"


class EmbedderRefused(EmbedderDown):
    """The embedder answered, but not with vectors: another text may do."""

    default_code = "embedder_refused"


@dataclass(frozen=True, slots=True)
class QueryWeights:
    """How much each word of a query says to its owner: `words` from casefolded word to 0..1.

    `trust` (0..1) says how far the owner's notes are enough to know; the rest is the embedder's own view.
    """

    words: Mapping[str, float]
    trust: float


class Embedder(Protocol):
    """Makes unit vectors. `dimension` may be 0 until the first answer.

    `noise` and `match` are the cosines of unrelated texts and of texts that say the same: the calibration.
    """

    name: str
    dimension: int
    query_prefix: str
    document_prefix: str
    noise: float
    match: float

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        """One unit row per text (zeros where a text has nothing to embed). Raises EmbedderDown."""

    def embed_queries(self, texts: Sequence[str]) -> Matrix:
        """One unit row per question. Raises EmbedderDown."""

    def embed_messages(self, texts: Sequence[str]) -> Matrix:
        """One unit row per message, to look for the notes that matter to it. Raises EmbedderDown."""


def unit_rows(matrix: NDArray[np.floating]) -> Matrix:
    """Rows scaled to length 1 as float32; zero and non-finite rows become zeros."""
    rows = np.nan_to_num(np.asarray(matrix, dtype=np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def answered_rows(answer: object, count: int, name: str) -> Matrix:
    """Unit rows of what an encoder answered to `count` texts. Raises EmbedderRefused where those are no vectors."""
    try:
        with np.errstate(over="ignore"):  # what is too large is refused below
            rows = np.asarray(answer, dtype=np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise EmbedderRefused(f"{name} sent no embeddings.") from error
    if rows.ndim != 2 or not rows.shape[1]:
        raise EmbedderRefused(f"{name} sent no embeddings.")
    if len(rows) != count:
        raise EmbedderRefused(f"{name} sent {len(rows)} embeddings for {count} texts.")
    if not np.isfinite(rows).all():
        raise EmbedderRefused(f"{name} sent embeddings that are no numbers.")
    return unit_rows(rows)
