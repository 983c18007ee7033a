"""The score of every passage of one user for one question.

A weighted sum of signals that are each scaled to 0..1 within the question (reciprocal-rank fusion lost clearly to this
on conversations). Keyword scores are BM25 over a passage together with its neighbours, term by term; meaning is the
cosine of the passage and that of its surroundings. The weights are few and round; docs/search.md says what each of them
brings, on a data set and on variants that break its habits.
"""

from dataclasses import dataclass

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.search.documents import Source
from apps.search.features import SOURCE_CODES
from apps.search.index.neighbours import OWN
from apps.search.index.rows import UserRows
from apps.search.ranking.query import Query, Term

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

WEIGHTS = {
    "keywords": 1.0,
    "meaning": 0.6,
    "surroundings": 0.7,
    "encoder": 0.4,
    "encoder_surroundings": 0.6,
    "name": 0.3,
    "answer": 0.55,
    "date": 1.5,
}
"""`keywords` and `surroundings` see the neighbours too; `name`: spoken by someone whom the question names; `answer`: of
the turn after another speaker's question, which asks what matches; `date`: it happened when the question says; `encoder` and
`encoder_surroundings`: what `meaning` and `surroundings` are, by the vectors of IZZY_EMBEDDER beside the bundled ones."""
BESIDE = 0.75
"""Beside an encoder's signals those of the bundled vectors count by so much."""

K1 = 1.2
B = 0.4
BASE_NORM = np.float32(K1 * (1 - B))


@dataclass(slots=True)
class Scores:
    """`total` orders all rows (-inf where not allowed); `signals` are its weighted parts; `cosine` is raw.

    `words` is the unscaled BM25 of the passages with their neighbours, None where the question has no words that are
    found; `most_words` what it comes to where every word of the question, found or not, stands as often as can be.
    `side_cosine` is the same by the encoder beside the bundled vectors. `missing` is by how much the vectors' signals
    weigh less than those of bundled vectors alone: by so much the best total would be another.
    """

    total: Floats
    signals: dict[str, Floats]
    cosine: Floats | None
    side_cosine: Floats | None
    words: Floats | None
    most_words: float
    missing: float


def score_rows(rows: UserRows, query: Query, allowed: Mask) -> Scores:
    """Scores of all rows, (size,) each."""
    weights = WEIGHTS | settings.IZZY_SEARCH_WEIGHTS
    within = None if allowed.all() else allowed
    words, signals = _keyword_signals(rows, query.terms, within)
    cosine = None
    if query.vector is not None:
        cosine = rows.cosines(query.vector)
        signals["meaning"] = _scaled(cosine, within, query.least_spread)
        around = rows.neighbours.spread(cosine)
        signals["surroundings"] = _scaled(around, within, query.least_spread)
    side = None
    if query.side_vector is not None:
        side = rows.side_cosines(query.side_vector, cosine, allowed)
    bundled = weights["meaning"] + weights["surroundings"]
    if side is not None:
        weights["meaning"] *= BESIDE
        weights["surroundings"] *= BESIDE
        signals["encoder"] = _scaled(side, within, query.least_side_spread)
        around = rows.neighbours.spread(side)
        signals["encoder_surroundings"] = _scaled(around, within, query.least_side_spread)
    signals |= _fact_signals(rows, query)
    total = rows.prior[: rows.size].copy()
    for name, signal in signals.items():
        signal *= np.float32(weights[name])
        total += signal
    if within is not None:
        total[~within] = -np.inf
    most_words = (K1 + 1) * (query.unknown + sum(term.idf for term in query.terms))
    missing = bundled - (0.0 if cosine is None else weights["meaning"] + weights["surroundings"])
    missing -= weights["encoder"] + weights["encoder_surroundings"] if side is not None else 0.0
    return Scores(total, signals, cosine, side, words, most_words, missing)


def _keyword_signals(
    rows: UserRows, terms: list[Term], within: Mask | None
) -> tuple[Floats | None, dict[str, Floats]]:
    if not terms:
        return None, {}
    around, alone, answer = (np.zeros(rows.size, dtype=np.float32) for _ in range(3))
    neighbours = rows.neighbours
    lengths = neighbours.spread_length[: rows.size]
    slope = np.float32(K1 * B / max(float(np.mean(lengths)), 1e-6))
    for term in terms:
        gain = np.float32(term.idf * term.weight * (K1 + 1))
        norm = BASE_NORM + slope * lengths[term.rows]
        alone[term.rows] += gain / (1 + norm)
        reached = neighbours.reach(term.rows, rows.size)
        if reached is None:
            around[term.rows] += gain * OWN / (OWN + norm)
        else:
            touched = np.flatnonzero(reached)
            frequency = reached[touched]
            around[touched] += gain * frequency / (frequency + BASE_NORM + slope * lengths[touched])
    np.maximum.at(answer, neighbours.replies, neighbours.shares * alone[neighbours.asked])
    return around, {
        "keywords": around * _one_of(around, within),
        "answer": answer * _one_of(alone, within),
    }


def _fact_signals(rows: UserRows, query: Query) -> dict[str, Floats]:
    facts = rows.features[: rows.size]
    signals: dict[str, Floats] = {}
    if query.names:
        named = np.isin(facts["first_name"], query.names) | np.isin(facts["last_name"], query.names)
        if query.about_self:
            named |= facts["source"] == SOURCE_CODES[Source.MEMORY]
        for found in query.named_rows:
            named[found[facts["first_name"][found] == 0]] = True
        signals["name"] = named.astype(np.float32)
    if query.spans:
        happened = facts["happened"]
        date = np.zeros(rows.size, dtype=np.float32)
        for span in query.spans:
            inside = (happened >= span.start) & (happened < span.end)
            date[inside] = np.maximum(date[inside], np.float32(span.strength))
        signals["date"] = date
    return signals


def _scaled(values: Floats, within: Mask | None, least: float) -> Floats:
    """Values brought to 0..1 by their smallest and largest (within the mask), or by `least` where those are closer."""
    inside = values if within is None else values[within]
    low, high = (float(inside.min()), float(inside.max())) if len(inside) else (0.0, 0.0)
    return np.asarray((values - np.float32(low)) * np.float32(1 / max(high - low, least, 1e-9)))


def _one_of(values: Floats, within: Mask | None) -> np.float32:
    """The factor that makes the largest value (within the mask) 1."""
    inside = values if within is None else values[within]
    high = float(inside.max()) if len(inside) else 0.0
    return np.float32(1 / high if high > 0 else 1)
