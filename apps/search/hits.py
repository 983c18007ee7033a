"""From rows of the index to what callers see."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.search.backends import Head, Row, backend
from apps.search.documents import Hit, Label
from apps.search.index.rows import UserRows
from apps.search.query import Query, Term
from apps.search.ranking import Scores
from apps.search.relevance import RIVALS, strength_of

DIGITS = 6
"""Significant digits of a score: fewer would make hits far down the list look the same."""


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that was found, before its text has been read."""

    passage_id: int
    score: float
    parts: dict[str, float]


def found_in(rows: UserRows, head: Head, query: Query, scores: Scores, top_k: int) -> list[Found]:
    """The best passages, at most one per document, best first."""
    places = best_places(scores.total, rows, max(top_k, RIVALS))
    calibrated = strength_of(places, rows, query, scores, head).score()[:top_k].tolist()
    places = places[:top_k]
    parts = {name: signal[places].round(4).tolist() for name, signal in scores.signals.items()}
    return [
        Found(
            passage_id=passage_id,
            score=float(f"{calibrated[rank]:.{DIGITS}g}"),
            parts={name: round(values[rank], 4) for name, values in parts.items()},
        )
        for rank, passage_id in enumerate(rows.ids[places].tolist())
    ]


def best_places(total: NDArray[np.float32], rows: UserRows, top_k: int) -> NDArray[np.int64]:
    """The rows of highest score, at most `top_k`, one per document, best first."""
    if not len(total):  # all that there was has left the index
        return np.empty(0, np.int64)
    wanted = top_k
    while True:
        wanted = min(wanted + min(top_k, 50), len(total))
        least = np.partition(total, len(total) - wanted)[len(total) - wanted]
        places = np.flatnonzero((total >= least) & (total > -np.inf))  # all that are as good as the last
        places = places[np.argsort(-total[places], kind="stable")]
        _, first = np.unique(rows.features["document"][places], return_index=True)
        if len(first) >= top_k or len(places) < wanted or wanted == len(total):
            return np.asarray(places[np.sort(first)][:top_k])
        wanted *= 4


def hits_for(user_id: UUID, found: list[Found], terms: Sequence[Term] = ()) -> list[Hit]:
    """The found passages with their text, and those of their labels that have one of the terms.

    One that has gone in the meantime is left out.
    """
    rows = backend.rows_fetch(user_id, [item.passage_id for item in found])
    return [_hit(item, rows[item.passage_id], terms) for item in found if item.passage_id in rows]


def _labels(packed: str, terms: Sequence[Term]) -> dict[Label, float]:
    """The labels that have words asked for, each with the share of the terms' weight that it has."""
    total = sum(term.idf for term in terms)
    shares = {
        Label(kind, words): sum(term.idf for term in terms if term.is_in(stems.split())) / total
        for kind, words, stems in (json.loads(packed) if packed and total else ())
    }
    return {label: share for label, share in shares.items() if share}


def _hit(found: Found, row: Row, terms: Sequence[Term]) -> Hit:
    labels = _labels(row.labels, terms)
    shares = {f"{label.kind}:{label.words}": round(share, 4) for label, share in labels.items()}
    return Hit(
        source=row.source,
        source_id=row.source_id,
        external_id=row.external_id,
        passage_id=row.id,
        text=row.text,
        score=found.score,
        conversation_id=row.conversation_id,
        happened_at=row.happened_at,
        speaker=row.speaker,
        parts={**found.parts, **shares},
        labels=tuple(labels),
    )
