"""What a plain keyword search and a plain vector search make of the same texts."""

import math
import re
from collections import Counter
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from apps.search.embedders.base import unit_rows
from apps.search.embedders.engines import embedder_for
from apps.search.embedders.static import StaticEmbedder

K1, B = 1.2, 0.75


def bm25_order(texts: list[str], question: str) -> list[int]:
    """Places of the texts by BM25 over plain lower-case words, best first."""
    postings, lengths = _postings(tuple(texts))
    scores = np.zeros(len(texts))
    norm = K1 * (1 - B + B * lengths / max(lengths.mean(), 1e-9))
    for word in set(_words(question)):
        found = postings.get(word)
        if found is not None:
            rows, counts = found
            weight = math.log(1 + (len(texts) - len(rows) + 0.5) / (len(rows) + 0.5))
            scores[rows] += weight * counts * (K1 + 1) / (counts + norm[rows])
    return list(np.argsort(-scores, kind="stable"))


def cosine_order(texts: list[str], question: str) -> list[int]:
    """Places of the texts by cosine of the bundled vectors, plainly averaged, best first."""
    return list(np.argsort(-(_means(tuple(texts)) @ _means((question,))[0]), kind="stable"))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@lru_cache(maxsize=8)
def _postings(
    texts: tuple[str, ...],
) -> tuple[dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]], NDArray[np.float64]]:
    lists: dict[str, tuple[list[int], list[int]]] = {}
    for row, text in enumerate(texts):
        for word, count in Counter(_words(text)).items():
            rows, counts = lists.setdefault(word, ([], []))
            rows.append(row)
            counts.append(count)
    arrays = {word: (np.array(rows), np.array(counts, dtype=float)) for word, (rows, counts) in lists.items()}
    return arrays, np.array([float(len(_words(text))) for text in texts])


@lru_cache(maxsize=2048)
def _means(texts: tuple[str, ...]) -> NDArray[np.float32]:
    embedder = embedder_for("static")
    assert isinstance(embedder, StaticEmbedder)
    return unit_rows(np.stack([embedder.plain_mean(text) for text in texts]))
