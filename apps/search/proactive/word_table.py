"""How much of what a message tells a text says in the same or similar words.

The mean of a text's vectors dilutes the one word that tells; so words are compared one by one: each word of the message with that of
the text that is nearest. A table, a file a language in `words/`, holds what an encoder makes of single words
(`scripts/word_table.py` makes it): that a physician is a doctor, that a kitten is taken to the vet. There is one for English.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from apps.search.embedders.base import Matrix, unit_rows
from apps.search.text.analysis import split_words

FOLDER = Path(__file__).with_name("words")
SIGNIFICANT = 127
"""The largest number that a vector in a table holds, in eight bits."""
FLOOR = 0.3
"""The cosine that one pair of words in a hundred exceeds by chance: below it words have nothing in common."""


class WordTable:
    """The vectors of words: eight-bit numbers in a file, any length, a row each."""

    def __init__(self, words: Sequence[str], vectors: NDArray[np.int8]) -> None:
        self._places = {word: place for place, word in enumerate(words)}
        self._vectors = vectors

    def save(self, path: Path) -> None:
        words = np.frombuffer("\n".join(self._places).encode(), dtype=np.uint8)
        np.savez_compressed(path, words=words, vectors=self._vectors)

    def knows(self, content: Mapping[str, float]) -> bool:
        """Whether half of what a message tells is told in words of the table."""
        known = sum(says for word, says in content.items() if word in self._places)
        return 0 < sum(content.values()) <= 2 * known

    def shares(self, content: Mapping[str, float], texts: Sequence[str]) -> NDArray[np.float32]:
        """The share, 0..1, of what a message tells that each text says in similar words."""
        asked = [word for word, says in content.items() if says and word in self._places]
        says = np.array([content[word] for word in asked], dtype=np.float32)
        said = [
            {place for word in split_words(text) if (place := self._places.get(word)) is not None}
            for text in texts
        ]
        order = {place: column for column, place in enumerate(set().union(*said))}
        likeness = self._rows([self._places[word] for word in asked]) @ self._rows(list(order)).T
        near = np.maximum((likeness - FLOOR) / (1 - FLOOR), 0)
        told = [
            float(says @ near[:, [order[place] for place in places]].max(axis=1)) if places else 0.0
            for places in said
        ]
        return np.array(told, dtype=np.float32) / np.float32(max(sum(content.values()), 1.0))

    def _rows(self, places: Sequence[int]) -> Matrix:
        return unit_rows(self._vectors[np.array(places, dtype=np.int64)].astype(np.float32))


@cache
def word_table(language: str) -> WordTable | None:
    """The table of a language, None where there is none."""
    path = FOLDER / f"{language}.npz"
    if not path.is_file():
        return None
    with np.load(path) as file:
        return WordTable(file["words"].tobytes().decode().split("\n"), file["vectors"])
