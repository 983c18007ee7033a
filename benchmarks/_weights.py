"""The weights of ranking, fitted to questions: each in turn, on a grid of round numbers, as long as recall@10 gains."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from django.test import override_settings
from django.utils import timezone
from numpy.typing import NDArray

from apps.search.index.cache import index_open
from apps.search.models import Passage
from apps.search.ranking.query import understand
from apps.search.ranking.signals import WEIGHTS, allowed_rows, score_rows
from apps.search.selectors import EVERYTHING
from apps.search.spaces import query_prepare

GRID = (0.0, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0, 1.5, 2.0)
START = 0.5
"""Where every weight but the first begins: nothing of the weights in use goes into the fit."""
ROUNDS = 4
DEPTH = 10
NAMES = tuple(WEIGHTS)

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Observed:
    """The questions of one conversation: their unweighted signals, (questions, NAMES, rows), what speaks for each row
    anyhow, which rows are the evidence, (questions, rows), and how many there should be."""

    signals: Floats
    prior: Floats
    evidence: NDArray[np.bool_]
    wanted: NDArray[np.int64]

    def recalls(self, weights: Floats) -> NDArray[np.float64]:
        """Recall@10 of each question."""
        total = self.prior + np.tensordot(weights, self.signals, axes=(0, 1))
        best = np.argpartition(-total, min(DEPTH, total.shape[1] - 1), axis=1)[:, :DEPTH]
        return np.asarray(np.take_along_axis(self.evidence, best, axis=1).sum(axis=1) / self.wanted)


def observe(user_id: UUID, questions: Sequence[tuple[str, Collection[str]]]) -> Observed:
    """The signals of all of a user's passages for questions whose evidence are the external ids beside them."""
    names = dict(Passage.objects.filter(user_id=user_id).values_list("external_id", "pk"))
    found, evidence = [], []
    for question, wanted in questions:
        query_prepare(user_id, question)
        now = timezone.now()
        with index_open(user_id) as opened:
            assert opened is not None
            head, rows = opened
            query = understand(question, rows, head, now=now)
            with override_settings(IZZY_SEARCH_WEIGHTS=dict.fromkeys(NAMES, 1.0)):
                signals = score_rows(rows, query, allowed_rows(rows, EVERYTHING, now=now)).signals
            nothing = np.zeros(rows.size, dtype=np.float32)
            found.append(np.stack([signals.get(name, nothing) for name in NAMES]))
            evidence.append(np.isin(rows.ids[: rows.size], [names[one] for one in wanted if one in names]))
            prior = rows.prior[: rows.size].copy()
    return Observed(np.stack(found), prior, np.stack(evidence), np.array([len(one) for _, one in questions]))


def mean_recall(observed: Sequence[Observed], weights: Floats) -> float:
    """Recall@10 over all questions."""
    return float(np.concatenate([one.recalls(weights) for one in observed]).mean())


def fitted_weights(observed: Sequence[Observed]) -> dict[str, float]:
    """The weights that find most of the evidence among the first ten; the first one is the measure of the others."""
    weights = np.full(len(NAMES), START, dtype=np.float32)
    weights[0] = 1.0
    best = mean_recall(observed, weights)
    for _ in range(ROUNDS):
        before = best
        for place in range(1, len(NAMES)):
            for value in GRID:
                tried = weights.copy()
                tried[place] = value
                if (recall := mean_recall(observed, tried)) > best:
                    best, weights = recall, tried
        if best == before:
            break
    return dict(zip(NAMES, (round(float(weight), 2) for weight in weights), strict=True))


def weights_in_use(*, without: str = "") -> Floats:
    """The weights of ranking, one of them 0."""
    return np.array(
        [0.0 if name == without else weight for name, weight in WEIGHTS.items()], dtype=np.float32
    )
