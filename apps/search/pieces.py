"""Words that the bundled vectors cannot read, and words that look alike only by their pieces.

The vocabulary knows 32,000 pieces: "joke" is read as "jo" and "ke", so that it seems near to a friend called Jo, and "cup"
is the beginning of "cupboard". In a ranking that is lost among better reasons; to decide whether to show anything at
all it must not count.
"""

from collections.abc import Collection, Sequence

import numpy as np

from apps.search.embedders import embedder_for
from apps.search.embedders.base import Matrix
from apps.search.embedders.static import StaticEmbedder
from apps.search.language.analysis import stems

LATIN_END = 0x250
"""The code point after the last Latin letter."""
AKIN = 5
"""Words that begin with so many letters in common are of one family, as the parts of compounds are."""


def can_read(space: str, words: Collection[str]) -> bool:
    """Whether a space's vectors mean anything for words: the bundled ones know other scripts than Latin by letters alone."""
    if space != StaticEmbedder.name:
        return True
    latin = sum(all(ord(sign) < LATIN_END for sign in word) for word in words)
    return 2 * latin >= len(words)


def vectors_without_accidents(space: str, texts: Sequence[str], words: Collection[str]) -> Matrix | None:
    """Vectors of texts without those pieces of their words that a question's `words` share by accident.

    (len(texts), dimension), comparable with the stored ones. None where the space knows no such pieces, or there are no texts.
    """
    if space != StaticEmbedder.name or not texts:
        return None
    embedder = embedder_for(space)
    assert isinstance(embedder, StaticEmbedder)  # noqa: S101 - that is its name
    asked = embedder.pieces(list(words))
    of_piece: dict[int, list[str]] = {}
    for word, pieces in asked.items():
        for piece in pieces:
            of_piece.setdefault(piece, []).append(word)

    def is_accident(piece: int, word: str, number: int) -> bool:
        """Whether a piece of a text's word, which has `number` of them, is shared with none of its family."""
        others = of_piece.get(piece, ())
        whole = any(number == 1 and len(asked[other]) == 1 for other in others)
        return bool(others) and not whole and not any(_akin(word, other) for other in others)

    return np.stack([embedder.embed_but(text, is_accident) for text in texts])


def _akin(word: str, other: str) -> bool:
    return word[:AKIN] == other[:AKIN] or stems([word], "en") == stems([other], "en")
