"""The one score that every surface shows: how likely a hit is what was asked for, 0..1.

A ranking orders the hits of one question; whether the best of them is any good is another question. So the score joins
the ranking's total, which makes it fall with rank, with the absolute evidence of the best hit, which makes it comparable
between questions. All of `CALIBRATION` is fitted by `manage.py benchmark calibrate` on labelled conversations and
on an invented person's notes, and rounded; it has to be fitted again when the signals of `ranking` or their weights change.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.search.backends import Head, Row, backend
from apps.search.documents import Causes, Hit, Label, Source
from apps.search.features import SOURCE_CODES, best_places
from apps.search.index.rows import UserRows
from apps.search.ranking.query import Query, Term
from apps.search.ranking.signals import Scores

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

WORTH_SHOWING = 0.45
"""From this score on about half of the hits are right."""
RIVALS = 10  # best documents that are looked at for rivals of the best one
RIVAL_FALL = 2.0
LEAST_EVIDENCE = 0.05


@dataclass(frozen=True, slots=True)
class Calibration:
    """The logarithm of the odds that a hit is right, as a sum of what `Strength` says of it."""

    best: float = 1.25
    fall: float = 4.25
    evidence: float = 1.75
    rivals: float = 1.25
    offset: float = -1.95


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


def strength_of(places: Rows, rows: UserRows, query: Query, scores: Scores, head: Head) -> Strength:
    """The strength of the hits at `places`, best first, of which there must be at least RIVALS, or all there are."""
    total = scores.total[places].astype(np.float64)
    behind = total[0] - total
    spoken = rows.features["source"][places[1:RIVALS]] == SOURCE_CODES[Source.CONVERSATION]
    near = float(np.exp(-RIVAL_FALL * behind[1:RIVALS][spoken]).sum())
    # The best hit's share of all that the question could find: in words, those unknown here among them, and in meaning.
    best = places[:1]
    shared = float(scores.words[best][0]) / scores.most_words if scores.words is not None else 0.0
    meanings = [
        float(np.clip(share_of(cosine[best], space), 0, 1)[0])
        for cosine, space in ((scores.cosine, head.base), (scores.side_cosine, head.side))
        if cosine is not None and space is not None
    ]
    if meanings:
        shared = (shared + sum(meanings) / len(meanings)) / 2
    return Strength(
        float(total[0]) + scores.missing,
        behind,
        float(np.log(query.substance * shared + LEAST_EVIDENCE)),
        float(np.log1p(near)),
    )


class Scale(Protocol):
    """Scale of cosines: the cosine of unrelated texts and that of texts that say the same."""

    @property
    def noise(self) -> float: ...
    @property
    def match(self) -> float: ...


def share_of(cosine: Floats, scale: Scale) -> Floats:
    """Similarity of two texts by their cosine, on the space's scale: 0 is unrelated, 1 says the same.

    Below 0 and above 1 too: what is ranked, or averaged over spaces, is distinguished there as well. How alike two documents
    are (duplicates, links) is another quantity than the score of a hit for a question.
    """
    return np.asarray((cosine - scale.noise) / max(scale.match - scale.noise, 1e-6))


def row_shares(rows: UserRows, base: Floats | None, side: Floats | None, allowed: Mask) -> Floats:
    """`share_of` each row's text and one whose vectors in the two spaces are given; -inf where that cannot be said.

    It is the mean of both spaces where the row has both of its vectors.
    """
    total = np.full(rows.size, -np.inf, dtype=np.float32)
    cosine = None
    if base is not None:
        cosine, known = rows.cosines(base), allowed & rows.embedded[: rows.size]
        total[known] = share_of(cosine[known], rows.base)
    beside = None if side is None else rows.side_cosines(side, cosine, allowed)
    if beside is not None and rows.side is not None:
        known = allowed & rows.side.embedded[: rows.size]
        shares, others = share_of(beside[known], rows.side.space), total[known]
        total[known] = np.where(others > -np.inf, (shares + others) / 2, shares)
    return total


MAX_NAMED_WORDS = 4
DIGITS = 6
"""Significant digits of a score: fewer would make hits far down the list look the same."""


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that was found, before its text has been read."""

    passage_id: int
    score: float
    parts: dict[str, float]
    words: tuple[str, ...] = ()  # of the question, that it has


def found_in(rows: UserRows, head: Head, query: Query, scores: Scores, top_k: int) -> list[Found]:
    """The best passages, at most one per document, best first."""
    places = best_places(scores.total, rows.features["document"], max(top_k, RIVALS))
    calibrated = strength_of(places, rows, query, scores, head).score()[:top_k].tolist()
    places = places[:top_k]
    parts = {name: signal[places].round(4).tolist() for name, signal in scores.signals.items()}
    words = words_at(places, query.terms)
    return [
        Found(
            passage_id=passage_id,
            score=float(f"{calibrated[rank]:.{DIGITS}g}"),
            parts={name: round(values[rank], 4) for name, values in parts.items()},
            words=words[rank],
        )
        for rank, passage_id in enumerate(rows.ids[places].tolist())
    ]


def words_at(places: Rows, terms: Sequence[Term]) -> list[tuple[str, ...]]:
    """For each row the words of the question that its passage has, the rarest MAX_NAMED_WORDS, in their order."""
    found: list[list[Term]] = [[] for _ in places]
    for term in terms:
        at = np.searchsorted(term.rows, places).clip(max=len(term.rows) - 1)
        for rank in np.flatnonzero(term.rows[at] == places).tolist():
            found[rank].append(term)
    for has in found:
        while len(has) > MAX_NAMED_WORDS:
            del has[min(range(len(has)), key=lambda place: has[place].idf)]
    return [tuple(term.word for term in has) for has in found]


def hits_for(
    user_id: UUID, found: list[Found], terms: Sequence[Term] = (), zone: tzinfo = UTC
) -> list[Hit]:
    """The found passages with their text, and those of their labels that have one of the terms; dates are said in `zone`.

    One that has gone in the meantime is left out.
    """
    rows = backend.rows_fetch(user_id, [item.passage_id for item in found])
    return [
        _hit(item, row, terms, zone) for item in found if (row := rows.get(item.passage_id)) is not None
    ]


def _hit(item: Found, row: Row, terms: Sequence[Term], zone: tzinfo) -> Hit:
    asked: dict[Label, list[Term]] = {}  # by label the terms that it has
    for kind, words, stems in json.loads(row.labels) if row.labels and terms else ():
        if has := [term for term in terms if term.is_in(stems.split())]:
            asked[Label(kind, words)] = has
    total = sum(term.idf for term in terms)
    shares = {
        f"{label.kind}:{label.words}": round(sum(term.idf for term in has) / total, 4)
        for label, has in asked.items()
    }
    labelled = {term.word for has in asked.values() for term in has}
    return Hit(
        source=row.source,
        source_id=row.source_id,
        external_id=row.external_id,
        passage_id=row.id,
        text=row.text,
        score=item.score,
        conversation_id=row.conversation_id,
        happened_at=row.happened_at,
        speaker=row.speaker,
        parts={**item.parts, **shares},
        labels=tuple(asked),
        causes=Causes(
            words=tuple(word for word in item.words if word not in labelled),
            date=row.happened_at.astimezone(zone) if item.parts.get("date", 0) > 0 else None,
        ),
    )
