"""The score of every passage of one user for one question.

A weighted sum of signals that are each scaled to 0..1 within the question (reciprocal-rank fusion lost clearly to this
on conversations). Keyword scores are BM25 over a passage together with its neighbours, term by term, over the passage
alone, and over its whole sitting; meaning is the cosine of the passage and that of its surroundings. The weights are few
and round; leaving any one signal out costs between 0.3 and 3 points of recall@10 on conversations.
"""

from dataclasses import dataclass

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.search.features import Flag
from apps.search.index.neighbours import BEFORE, OFFSETS, TERM_KERNEL, TERM_SELF
from apps.search.index.rows import UserRows
from apps.search.query import Query, Term

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]

WEIGHTS = {
    "keywords": 1.0,
    "meaning": 0.4,
    "surroundings": 0.8,
    "sitting": 0.3,
    "name": 0.3,
    "answer": 0.6,
    "time": 0.5,
    "date": 2.0,
}
"""`keywords` and `surroundings` see the neighbours too; `answer`: the passage before asks what matches; `time`: a
question for a time meets a passage that names one; `date`: it happened when the question says."""

K1 = 1.2
B = 0.4
SITTING_B = 0.75
TOP_SCORE = 3.7
"""A sum that only an all but perfect match reaches; scores are given as shares of it."""


@dataclass(slots=True)
class Scores:
    """`total` orders all rows (-inf where not allowed); `signals` are its weighted parts; `cosine` is raw."""

    total: Floats
    signals: dict[str, Floats]
    cosine: Floats | None


def score_rows(rows: UserRows, query: Query, allowed: Mask) -> Scores:
    """Scores of all rows, (size,) each."""
    weights = WEIGHTS | settings.IZZY_SEARCH_WEIGHTS
    signals = _keyword_signals(rows, query.terms, allowed)
    cosine = None
    if query.vector is not None:
        cosine = rows.cosines(query.vector)
        signals["meaning"] = _scaled(cosine, allowed, query.least_spread)
        signals["surroundings"] = _scaled(rows.neighbours.spread_meaning(cosine), allowed, query.least_spread)
    signals |= _fact_signals(rows, query)
    total = rows.prior[: rows.size].copy()
    for name, signal in signals.items():
        signal *= np.float32(weights[name])
        total += signal
    total[~allowed] = -np.inf
    return Scores(total, signals, cosine)


def _keyword_signals(rows: UserRows, terms: list[Term], allowed: Mask) -> dict[str, Floats]:
    size = rows.size
    if not terms:
        return {}
    around, alone, sitting = (np.zeros(size, dtype=np.float32) for _ in range(3))
    lengths = rows.neighbours.spread_length[:size]
    norm = K1 * (1 - B + B * lengths / max(float(np.mean(lengths)), 1e-6))
    for term in terms:
        gain = np.float32(term.idf * term.weight * (K1 + 1))
        _add_around(around, rows, term.rows, gain, norm)
        alone[term.rows] += gain / (1 + norm[term.rows])
        _add_sitting(sitting, rows, term, gain)
    answer = _asked_before(rows, alone)
    return {
        "keywords": _share(around, allowed),
        "sitting": _share(sitting, allowed),
        "answer": _share(answer, allowed, alone),
    }


def _add_around(score: Floats, rows: UserRows, found: Rows, gain: np.float32, norm: Floats) -> None:
    """One term's BM25, its frequency in a row being the kernel's sum over the row and its neighbours."""
    table = rows.neighbours.table[found]
    if not (table >= 0).any():
        score[found] += gain * TERM_SELF / (TERM_SELF + norm[found])
        return
    reach = np.zeros(rows.size + 1, dtype=np.float32)  # the last place takes what has no neighbour
    reach[found] = TERM_SELF
    for column, weight in enumerate(TERM_KERNEL):
        reach[table[:, len(OFFSETS) - 1 - column]] += np.float32(weight)
    touched = np.flatnonzero(reach[:-1])
    frequency = reach[touched]
    score[touched] += gain * frequency / (frequency + norm[touched])


def _add_sitting(score: Floats, rows: UserRows, term: Term, gain: np.float32) -> None:
    """One term's BM25 over whole sittings, given to each row of the sitting."""
    neighbours = rows.neighbours
    numbers = neighbours.sitting[term.rows]
    lone = term.rows[numbers < 0]
    sittings = len(neighbours.sitting_lengths)
    groups = np.count_nonzero(neighbours.sitting_lengths) + rows.size - len(neighbours.linked)
    mean = float(rows.features["length"][: rows.size].sum()) / max(int(groups), 1)
    lengths = rows.features["length"][lone]
    score[lone] += gain / (1 + K1 * (1 - SITTING_B + SITTING_B * lengths / max(mean, 1e-6)))
    if len(lone) < len(term.rows):
        frequency = np.bincount(numbers[numbers >= 0], minlength=sittings).astype(np.float32)
        norm = K1 * (1 - SITTING_B + SITTING_B * neighbours.sitting_lengths / max(mean, 1e-6))
        share = gain * frequency / (frequency + norm)
        linked = neighbours.linked
        score[linked] += share[neighbours.sitting[linked]]


def _asked_before(rows: UserRows, alone: Floats) -> Floats:
    """For each row the keyword score of the question that it may answer."""
    answer = np.zeros(rows.size, dtype=np.float32)
    linked = rows.neighbours.linked
    before = rows.neighbours.table[linked, BEFORE]
    linked, before = linked[before >= 0], before[before >= 0]
    asks = rows.features["flags"][before] & Flag.QUESTION > 0
    answer[linked[asks]] = alone[before[asks]]
    return answer


def _fact_signals(rows: UserRows, query: Query) -> dict[str, Floats]:
    facts = rows.features[: rows.size]
    signals: dict[str, Floats] = {}
    if query.names:
        named = np.isin(facts["first_name"], query.names) | np.isin(facts["last_name"], query.names)
        for found in query.named_rows:
            named[found[facts["first_name"][found] == 0]] = True
        signals["name"] = named.astype(np.float32)
    if query.asks_when:
        signals["time"] = (facts["flags"] & Flag.TIME > 0).astype(np.float32)
    if query.spans:
        happened = facts["happened"]
        date = np.zeros(rows.size, dtype=np.float32)
        for span in query.spans:
            inside = (happened >= span.start) & (happened < span.end)
            date[inside] = np.maximum(date[inside], np.float32(span.strength))
        signals["date"] = date
    return signals


def _scaled(values: Floats, allowed: Mask, least: float) -> Floats:
    """Values brought to 0..1 by their smallest and largest among the allowed rows, or by `least` where those are closer."""
    inside = values[allowed] if not allowed.all() else values
    low, high = (float(inside.min()), float(inside.max())) if len(inside) else (0.0, 0.0)
    return np.asarray((values - np.float32(low)) * np.float32(1 / max(high - low, least, 1e-9)))


def _share(values: Floats, allowed: Mask, beside: Floats | None = None) -> Floats:
    """Values as shares of the largest among the allowed rows (of `beside`, where given)."""
    against = values if beside is None else beside
    high = float(against[allowed].max()) if allowed.any() else 0.0
    return values * np.float32(1 / high) if high > 0 else values
