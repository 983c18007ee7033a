"""How much of what a message tells a text says in the same or similar words.

The mean of a text's vectors dilutes the one word that tells; so words are compared one by one: each word of the message with that of
the text that is nearest, so that a physician is a doctor. What is known of words are the input embeddings of all-MiniLM-L6-v2
(Apache License 2.0), of which nothing is computed; they come in a package of their own, without which there is no table.
"""

import logging
import zipfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.search.embedders.base import Matrix, unit_rows
from apps.search.embedders.own import MINILM, TOKENIZER, WEIGHTS, weights_files, weights_zip
from apps.search.embedders.transformer import WORDS, tensors
from apps.search.kept import UNREADABLE, array_kept, kept_file
from apps.search.text.analysis import split_words, stop_words

logger = logging.getLogger(__name__)

LANGUAGE = "en"
DIMENSION = 96
"""Numbers that are kept of each vector: in the directions in which words differ most."""
SHORTEST = 3
"""Letters of a word that is compared."""
SIGNIFICANT = 127
"""The largest number of a vector in memory, in eight bits."""
FLOOR = 0.3
"""The cosine that one pair of words in a hundred exceeds by chance: below it words have nothing in common."""


class WordTable:
    """The vectors of words: those of the pieces that `tokenizer` cuts them into, (pieces, dimension), any length."""

    def __init__(self, tokenizer: Any, vectors: NDArray[np.int8]) -> None:
        self._tokenizer = tokenizer
        self._unknown = tokenizer.token_to_id("[UNK]")
        self._vectors = vectors

    def knows(self, content: Mapping[str, float]) -> bool:
        """Whether half of what a message tells is said in words of the table."""
        places, _ = self._looked_up(content)
        return 0 < sum(content.values()) <= 2 * sum(content[word] for word in places)

    def shares(self, content: Mapping[str, float], texts: Sequence[str]) -> NDArray[np.float32]:
        """The share, 0..1, of what a message tells that each text says in similar words."""
        asked, rows = self._looked_up({word for word, says in content.items() if says})
        words = [set(split_words(text)) - stop_words(LANGUAGE) for text in texts]
        said, columns = self._looked_up(set().union(*words))
        near = np.maximum((rows @ columns.T - FLOOR) / (1 - FLOOR), 0)
        says = np.array([content[word] for word in asked], dtype=np.float32)
        places = [[said[word] for word in each if word in said] for each in words]
        covered = [float(says @ near[:, each].max(axis=1)) if each and asked else 0.0 for each in places]
        return np.array(covered, dtype=np.float32) / np.float32(max(sum(content.values()), 1.0))

    def _looked_up(self, words: "set[str] | Mapping[str, float]") -> tuple[dict[str, int], Matrix]:
        """The rows of those words that can be compared, and their unit vectors: of a word of several pieces their mean."""
        fit = sorted(
            word for word in words if len(word) >= SHORTEST and word.isascii() and word.isalpha()
        )
        # Not as a batch: that goes to threads of its own, and a few words wait for those longer than they take.
        cut = [self._tokenizer.encode(word, add_special_tokens=False).ids for word in fit]
        known = [
            (word, ids) for word, ids in zip(fit, cut, strict=True) if ids and self._unknown not in ids
        ]
        if not known:
            return {}, np.zeros((0, self._vectors.shape[1]), dtype=np.float32)
        pieces = unit_rows(self._vectors[np.concatenate([ids for _, ids in known])].astype(np.float32))
        starts = np.cumsum([0, *(len(ids) for _, ids in known[:-1])])
        vectors = unit_rows(np.add.reduceat(pieces, starts, axis=0))
        return {word: row for row, (word, _) in enumerate(known)}, vectors


@cache
def word_table(language: str) -> WordTable | None:
    """The table of a language, None where there is none. Read once; it takes 3 MB, which processes share where it was kept."""
    if language != LANGUAGE or not weights_files(MINILM):
        return None
    try:
        return read_table()
    except UNREADABLE:
        logger.exception("the word vectors cannot be read: words are compared as they are written")
        return None


def read_table() -> WordTable:
    """Read the table from the package. Raises one of UNREADABLE where it is damaged."""
    from tokenizers import Tokenizer

    with weights_zip(MINILM) as packed:
        tokenizer = Tokenizer.from_buffer(packed.read(TOKENIZER))
        vectors = array_kept(_kept_file(packed), lambda: _shortened(packed, tokenizer))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return WordTable(tokenizer, vectors)


def _kept_file(packed: zipfile.ZipFile) -> Path:
    made = f"{packed.getinfo(WEIGHTS).CRC:08x}-{DIMENSION}-{SHORTEST}-{SIGNIFICANT}"
    return kept_file(f"words-{made}.npy")


def _shortened(packed: zipfile.ZipFile, tokenizer: Any) -> NDArray[np.int8]:
    """All vectors, along the directions in which those of whole words differ most."""
    raw = tensors(packed.read(WEIGHTS))[WORDS]
    whole = [
        place
        for word, place in tokenizer.get_vocab().items()
        if len(word) >= SHORTEST and word.isascii() and word.isalpha()
    ]
    centred = raw - raw[whole].mean(axis=0)
    _, directions = np.linalg.eigh(centred[whole].T @ centred[whole])  # the largest last
    turned = centred @ directions[:, -DIMENSION:]
    largest = np.abs(turned).max(axis=1, keepdims=True)
    vectors: NDArray[np.int8] = np.round(turned / largest * SIGNIFICANT).astype(np.int8)
    return vectors
