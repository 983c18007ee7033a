"""The evidence for the documents that might come up and for nothing at all, and the score that their odds make.

The weights are fitted by `manage.py benchmark weights` to the labelled people of `benchmarks/people/` and to the messages of
`messages/`: the conditional likelihood of what is wanted, where "nothing" is one of the choices. They are fitted apart with an
encoder (ENCODER), with a table of words alone (SIMILAR), with neither where it was counted how often the language uses its words
(COUNTED), and where not even that is known (STATIC).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

EVIDENCE = ("meaning", "words", "mentioned", "occasion", "occasion_words", "encoder_occasion", "adapted")
"""Names of what speaks for a document, and the parts of a hit."""
MEANING, WORDS, MENTIONED, OCCASION, OCCASION_WORDS, ENCODED_OCCASION, ADAPTED = range(len(EVIDENCE))
AGAINST = ("nothing", "lean", "concern", "encoder_concern")
"""Names of what speaks for nothing at all: always, of a message that leans on its talk, of one that concerns the user."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Log-odds for each standard deviation, for all of a message's words, for each word mentioned; `threshold` is that of a note to bring up.

    `audible` is how far a note, or an occasion, has to stand out in the encoder's space to speak at all."""

    evidence: tuple[float, ...]
    against: tuple[float, ...]
    threshold: float
    audible: float = 0.0


COUNTED = Weights((0.38, 0.0, 5.43, 0.18, 3.62, 0.0, 0.0), (3.48, 0.69, -4.84, 0.0), -0.7)
STATIC = Weights((0.47, 0.0, 2.94, 0.28, 1.44, 0.0, 0.0), (3.77, -2.85, -4.71, 0.0), -0.8)
SIMILAR = Weights((0.87, 7.9, 0.0, 0.57, 5.19, 0.0, 0.0), (3.68, -4.04, -6.26, 0.0), -0.3)
ENCODER = Weights((0.3, 0.0, 1.6, 0.0, 1.75, 0.46, 1.83), (1.2, -3.72, -3.07, -4.09), -1.3, -1.0)
RIVALRY = 1.5
"""How much a better one weighs against a document, beside nothing at all."""
STEEPNESS = 2.0
"""How fast a score rises with the odds: so that a note of importance 5 needs about half of those of one of importance 3."""
ABOUT = 0.45
"""The score of a document at the threshold; below it is noise."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The evidence for the best documents, (documents, EVIDENCE), and for nothing at all, (AGAINST,).

    `passages` are their ids, `free` says which of them the scope does not exclude; `occasions` are the nearest of each.
    """

    evidence: Floats
    against: Floats
    passages: Rows
    free: Sequence[bool]
    occasions: tuple[str, ...]
    weights: Weights


def scores_of(seen: Observed) -> NDArray[np.float64]:
    """The score of each document: its odds against nothing at all and against the best, brought to 0..1."""
    weights = np.asarray(seen.weights.evidence)
    total = seen.evidence.astype(np.float64) @ weights
    nothing = float(seen.against.astype(np.float64) @ np.asarray(seen.weights.against))
    best = float(total.max())
    # The better one is no rival of itself.
    ahead = np.exp(np.clip(best - nothing, -30, 30)) - np.exp(np.clip(total - nothing, -30, 30))
    odds = total - nothing - np.log1p(RIVALRY * ahead)
    above = STEEPNESS * (odds - seen.weights.threshold)
    scores = 1 / (1 + np.exp(math.log(1 / ABOUT - 1) - above))
    # However much the message concerns the user: what no evidence speaks for does not come up.
    speaks = seen.evidence > 0
    for kind in (ENCODED_OCCASION, ADAPTED):
        speaks[:, kind] = seen.evidence[:, kind] > seen.weights.audible
    speaks &= weights > 0
    return np.where(speaks.any(axis=1), scores, 0.0)
