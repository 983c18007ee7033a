"""How near single words are in meaning, by the bundled vectors: for what has to do without a language model."""

from collections.abc import Sequence
from functools import cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from apps.search.embedders.base import Matrix
from apps.search.embedders.engines import static_embedder
from apps.search.embedders.static import StaticEmbedder

COMMON_WORDS = 6000
"""Of the vocabulary's words the so many most frequent are offered as neighbours."""
KEPT_WORDS = 4000
"""Words, of whoever's texts, whose vectors a process keeps (3 MB): to say why twenty notes were found takes those of three hundred."""
_kept: dict[str, NDArray[np.float16]] = {}


def nearness(words: Sequence[str], others: Sequence[str]) -> Matrix:
    """Cosines (len(words), len(others)) of words or short phrases; zeros where the bundled vectors are missing."""
    embedder = static_embedder()
    if embedder is None or not words or not others:
        return np.zeros((len(words), len(others)), dtype=np.float32)
    both = _vectors(embedder, [*words, *others])
    return np.asarray(both[: len(words)] @ both[len(words) :].T, dtype=np.float32)


def _vectors(embedder: StaticEmbedder, words: Sequence[str]) -> Matrix:
    found = {word: _kept.get(word) for word in words}
    if new := [word for word, vector in found.items() if vector is None]:
        made = dict(zip(new, embedder.embed_documents(new).astype(np.float16), strict=True))
        if len(_kept) + len(made) > KEPT_WORDS:
            _kept.clear()
        _kept.update(islice(made.items(), KEPT_WORDS))
        found |= made
    return np.array([found[word] for word in words], dtype=np.float32)


def neighbours(words: Sequence[str], *, least: float, limit: int) -> list[str]:
    """Common English words whose cosine with one of these is at least `least`, nearest first, themselves left out."""
    embedder = static_embedder()
    if embedder is None or not words:
        return []
    known, vectors = _vocabulary(embedder)
    best = (embedder.embed_documents(list(words)) @ vectors.T).max(axis=0)
    order = np.argsort(-best, kind="stable")[: limit + len(words)]
    found = [known[place] for place in order if best[place] >= least and known[place] not in words]
    return found[:limit]


@cache
def common_words() -> frozenset[str]:
    """The vocabulary's whole lower-case words of four letters and more; none where the bundled vectors are missing."""
    embedder = static_embedder()
    return frozenset(embedder.vocabulary_words()) if embedder else frozenset()


@cache
def _vocabulary(embedder: StaticEmbedder) -> tuple[list[str], Matrix]:
    """Words and their unit vectors, 6 MB, made at first use."""
    words = [word for word in embedder.vocabulary_words() if word.isascii()][:COMMON_WORDS]
    return words, embedder.embed_documents(words)
