"""Absolute relevance, comparable between questions: what a threshold may look at."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from apps.search.index.store import Head
from apps.search.query import Query

Floats = NDArray[np.float32]

KEYWORD_TRUST = 0.7
"""How relevant a passage is that has every telling word of the question and no similarity of meaning."""


class Scale(Protocol):
    """What calibrates cosines: the cosine of unrelated texts and that of texts that say the same."""

    @property
    def noise(self) -> float: ...
    @property
    def match(self) -> float: ...


def likeness(cosine: Floats, head: Scale) -> Floats:
    """Cosines of whole documents on the space's scale: 0 is unrelated, 1 says the same."""
    share = (cosine - head.noise) / max(head.match - head.noise, 1e-6)
    return np.asarray(np.clip(share, 0, 1))


def calibrated(cosine: Floats, head: Head) -> Floats:
    """How relevant a passage is to a question by its cosine: the root of likeness, since half-way is much already."""
    return np.asarray(np.sqrt(likeness(cosine, head)))


def relevance_of(places: NDArray[np.int64], query: Query, cosine: Floats | None, head: Head) -> Floats:
    """Relevance 0..1 of a few rows: meaning and shared words, either of which may do."""
    words = _words_shared(places, query) * KEYWORD_TRUST
    if cosine is None:
        return words
    return 1 - (1 - calibrated(cosine[places], head)) * (1 - words)


def _words_shared(places: NDArray[np.int64], query: Query) -> Floats:
    """The share of the question's words, each weighted by how telling it is, that each row has."""
    total = query.unknown + sum(term.idf for term in query.terms)
    shared = np.zeros(len(places), dtype=np.float32)
    for term in query.terms:
        near = np.minimum(np.searchsorted(term.rows, places), len(term.rows) - 1)
        shared[term.rows[near] == places] += np.float32(term.idf * term.weight)
    return shared / np.float32(total) if total else shared
