"""The evidence for the documents that might come up and for nothing at all, and the score that their odds make.

Two steps, since a message may want several documents: how likely each is to be the one that matters, or nothing; then, by the same
evidence and by how far the likeliest is ahead, how likely a person is to want it.

The weights are fitted by `manage.py benchmark weights` to the labelled people of `benchmarks/people/` and to the messages of
`messages/`: those of the first step by the conditional likelihood of what is wanted, where "nothing" is one of the choices, those of
the second by logistic regression. They are fitted apart with an encoder (ENCODER), with a table of words alone (SIMILAR), with
neither where it was counted how often the language uses its words (COUNTED), and where not even that is known (STATIC).
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


BESIDE = ("rivals", "surplus", "behind", "many")
"""Names of what speaks against a document in the second step: how far others are likelier than it and than nothing (log); how far it
is itself beyond nothing (log: the more it is, the less one more tells); how many are ahead of it (log); and how many documents there
are, among which chance finds more (log)."""
FEW, MANY = 15, 150
"""Between so many documents it was measured what `many` says; fewer or more than that say no more."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Log-odds for each standard deviation, for all of a message's words, for each word mentioned.

    `evidence` and `against` are those of the first step, `wanted` those of the second: EVIDENCE, AGAINST and BESIDE; `threshold` is
    that of a note to bring up. `audible` is how far a note, or an occasion, has to stand out in the encoder's space to speak at all.
    """

    evidence: tuple[float, ...]
    against: tuple[float, ...]
    wanted: tuple[float, ...]
    threshold: float
    audible: float = 0.0


_ALONE = (0.47, 0.0, 2.94, 0.28, 1.44, 0.0, 0.0), (3.77, -2.85, -4.71, 0.0)
# Fitted to nobody who speaks such a language: the second step says what the first does.
STATIC = Weights(*_ALONE, (*_ALONE[0], *_ALONE[1], 1.0, 0.0, 0.0, 0.0), -0.8)
COUNTED = Weights(
    (0.38, 0.0, 5.43, 0.18, 3.62, 0.0, 0.0),
    (3.48, 0.69, -4.84, 0.0),
    (
        *(0.38, 0.0, 7.73, 0.22, 4.05, 0.0, 0.0),
        *(5.22, -0.32, -4.51, 0.0),
        *(0.28, 0.54, 0.2, 0.4),
    ),
    -2.1,
)
SIMILAR = Weights(
    (0.87, 7.9, 0.0, 0.57, 5.19, 0.0, 0.0),
    (3.68, -4.04, -6.26, 0.0),
    (
        *(0.48, 5.91, 1.95, 0.37, 5.8, 0.0, 0.0),
        *(3.83, -2.83, -4.25, 0.0),
        *(0.27, 0.4, 0.49, 0.42),
    ),
    -1.1,
)
ENCODER = Weights(
    (0.3, 0.0, 1.6, 0.0, 1.75, 0.46, 1.83),
    (1.2, -3.72, -3.07, -4.09),
    (
        *(0.23, 0.0, 3.49, 0.0, 2.76, 0.38, 1.4),
        *(1.98, -2.9, -2.29, -2.93),
        *(0.29, 0.4, 0.29, 0.32),
    ),
    -1.4,
    -1.0,
)
RIVALRY = 1.5
"""How much a better one weighs against a document, beside nothing at all."""
STEEPNESS = 2.0
"""How fast a score rises with the odds: so that a note of importance 5 needs about half of those of one of importance 3."""
ABOUT = 0.45
"""The score of a document at the threshold; below it is noise."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The evidence for the best documents, (documents, EVIDENCE), and for nothing at all, (AGAINST,).

    `passages` are their ids, `free` says which of them the scope does not exclude; `occasions` are the nearest of each. They are the
    best of so many (`number`).
    """

    evidence: Floats
    against: Floats
    passages: Rows
    free: Sequence[bool]
    occasions: tuple[str, ...]
    weights: Weights
    number: int


def scores_of(seen: Observed) -> NDArray[np.float64]:
    """The score of each document: the odds that it is wanted, brought to 0..1."""
    above = STEEPNESS * (odds_of(seen) @ np.asarray(seen.weights.wanted) - seen.weights.threshold)
    scores = 1 / (1 + np.exp(math.log(1 / ABOUT - 1) - above))
    # However much the message concerns the user: what no evidence speaks for does not come up.
    speaks = seen.evidence > 0
    for kind in (ENCODED_OCCASION, ADAPTED):
        speaks[:, kind] = seen.evidence[:, kind] > seen.weights.audible
    speaks &= np.asarray(seen.weights.evidence) > 0
    return np.where(speaks.any(axis=1), scores, 0.0)


def odds_of(seen: Observed) -> NDArray[np.float64]:
    """The terms that the second step weighs, (documents, EVIDENCE + AGAINST + BESIDE): what speaks against a document is negative."""
    evidence, against = seen.evidence.astype(np.float64), seen.against.astype(np.float64)
    beyond = evidence @ np.asarray(seen.weights.evidence) - against @ np.asarray(seen.weights.against)
    likely = np.exp(np.clip(beyond, -30, 30))
    rivals = np.log1p(RIVALRY * (likely.max() - likely))  # the likeliest is no rival of itself
    behind = np.log1p((beyond[None, :] > beyond[:, None]).sum(axis=1))
    many = np.full(len(evidence), math.log(min(max(seen.number, FEW), MANY) / FEW))
    beside = np.stack([rivals, np.log1p(likely), behind, many], axis=1)
    return np.hstack([evidence, -np.tile(against, (len(evidence), 1)), -beside])
