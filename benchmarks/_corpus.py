"""Made-up notes: about 25 words each, drawn as in real text (Zipf) from the words of the bundled vocabulary."""

from dataclasses import dataclass, field

import numpy as np

from apps.search.embedders.engines import embedder_for
from apps.search.embedders.static import StaticEmbedder

WORDS_PER_NOTE = 25
WORDS_PER_QUESTION = 4
COMMON = 2000
"""Questions ask for words among the so many most frequent ones, which is the dear case."""


@dataclass
class Corpus:
    """Endless notes and questions, the same in every run."""

    seed: int = 1
    words: list[str] = field(init=False)

    def __post_init__(self) -> None:
        embedder = embedder_for("static")
        assert isinstance(embedder, StaticEmbedder)
        self.words = embedder.vocabulary_words()
        self._random = np.random.default_rng(self.seed)
        shares = 1 / np.arange(1, len(self.words) + 1) ** 0.9
        self._shares = shares / shares.sum()

    def notes(self, number: int) -> list[str]:
        drawn = self._random.choice(len(self.words), size=(number, WORDS_PER_NOTE), p=self._shares)
        return [" ".join(self.words[word] for word in row) for row in drawn]

    def questions(self, number: int) -> list[str]:
        drawn = self._random.choice(min(COMMON, len(self.words)), size=(number, WORDS_PER_QUESTION))
        return ["what is the " + " ".join(self.words[word] for word in row) for row in drawn]
