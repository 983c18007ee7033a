"""The one score that every surface shows: how likely a hit is what was asked for, 0..1.

A ranking orders the hits of one question; whether the best of them is any good is another question. So the score joins
the ranking's total, which makes it fall with rank, with the absolute evidence of the best hit, which makes it comparable
between questions. All of `CALIBRATION` is fitted by `manage.py benchmark calibrate` on labelled conversations and
on an invented person's notes, and rounded; it has to be fitted again when the signals of `ranking` or their weights change.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from apps.search.documents import Source
from apps.search.features import SOURCE_CODES
from apps.search.index.rows import UserRows
from apps.search.query import Query
from apps.search.ranking import Scores

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

WORTH_SHOWING = 0.45
"""From this score on about half of the hits are right."""
RIVALS = 10  # best documents that are looked at for rivals of the best one
RIVAL_FALL = 2.0
LEAST_EVIDENCE = 0.05


@dataclass(frozen=True, slots=True)
class Calibration:
    """The logarithm of the odds that a hit is right, as a sum of what `Strength` says of it."""

    best: float = 1.0
    fall: float = 4.0
    evidence: float = 1.5
    rivals: float = 1.25
    offset: float = -1.75


CALIBRATION = Calibration()


@dataclass(frozen=True, slots=True)
class Strength:
    """Strength of the hits of one question: the total of the best, and how far each is behind it.

    `evidence` is the logarithm of the absolute evidence of the best hit, `rivals` of how many messages come close to it:
    of a talk one message answers and those around it only sound alike, while notes that are alike may all be meant.
    """

    best: float
    behind: NDArray[np.float64]
    evidence: float
    rivals: float

    def score(self, by: Calibration = CALIBRATION) -> NDArray[np.float64]:
        """The score of each hit, best first; falls wherever the total does."""
        odds = by.best * self.best + by.evidence * self.evidence - by.rivals * self.rivals + by.offset
        return np.asarray(1 / (1 + np.exp(by.fall * self.behind - odds)))


def strength_of(places: Rows, rows: UserRows, query: Query, scores: Scores, scale: "Scale") -> Strength:
    """The strength of the hits at `places`, best first, of which there must be at least RIVALS, or all there are."""
    total = scores.total[places].astype(np.float64)
    behind = total[0] - total
    spoken = rows.features["source"][places[1:RIVALS]] == SOURCE_CODES[Source.CONVERSATION]
    near = float(np.exp(-RIVAL_FALL * behind[1:RIVALS][spoken]).sum())
    evidence = query.substance * _shared(int(places[0]), query, scores, scale)
    return Strength(
        float(total[0]) + scores.missing,
        behind,
        float(np.log(evidence + LEAST_EVIDENCE)),
        float(np.log1p(near)),
    )


def _shared(best: int, query: Query, scores: Scores, scale: "Scale") -> float:
    """The best hit's share of all that the question could find, 0..1: in words, those unknown here among them, and in
    meaning; in words alone where there are no vectors."""
    words = float(scores.words[best]) / scores.most_words if scores.words is not None else 0.0
    if scores.cosine is None:
        return words
    return (words + float(likeness(scores.cosine[best : best + 1], scale)[0])) / 2


class Scale(Protocol):
    """Scale of cosines: the cosine of unrelated texts and that of texts that say the same."""

    @property
    def noise(self) -> float: ...
    @property
    def match(self) -> float: ...


def likeness(cosine: Floats, scale: Scale) -> Floats:
    """Similarity of two texts by their cosine, on the space's scale: 0 is unrelated, 1 says the same.

    How alike two documents are (duplicates, links) is another quantity than the score of a hit for a question.
    """
    share = (cosine - scale.noise) / max(scale.match - scale.noise, 1e-6)
    return np.asarray(np.clip(share, 0, 1))
