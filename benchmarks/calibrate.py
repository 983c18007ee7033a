"""Fits the score of search to labelled questions, one conversation left out at a time, and says how good it is.

The data set is that of `retrieval`. Each question is asked of its own conversation and of all others, where no hit is right,
also with the names of those who speak there in place of its own. Beside it stand the notes and messages of `surfacing` (half
of them for fitting, the other half for the figures), all notes and few at a time, and nonsense, every second for fitting.
The score in use is `CALIBRATION` in `apps/search/ranking/relevance.py`: the last row of the first table, rounded.
"""

import random
import re
import statistics
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from django.conf import settings
from numpy.typing import NDArray

from apps.memory.notes.creation import memory_bulk_create
from apps.search.features import best_places
from apps.search.models import Passage
from apps.search.ranking.relevance import (
    CALIBRATION,
    WORTH_SHOWING,
    Calibration,
    Strength,
    strength_of,
)
from benchmarks import _encoders
from benchmarks._questions import Conversation, Run, ingest, read_dataset, scored
from benchmarks._scratch import api_client, make_user, scratch_database
from benchmarks._surfacing_texts import NONSENSE, known_notes, messages
from benchmarks.report import Report

DEPTH = 10
BAND = 0.05
SIZES = (3, 6, 12, 24)
DRAWS = 6
MASS = {"own": 1000.0, "other": 300.0, "renamed": 300.0, "notes": 300.0, "nonsense": 300.0}
"""How much each kind of question counts in the fit, whatever their number."""
BANDS = (0.15, 0.25, 0.35, WORTH_SHOWING, 0.55, 0.65, 0.75)
LEAST_AREA, BAND_RIGHT, MOST_TIES = 0.85, (0.35, 0.65), 0.01

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it was asked of somebody: `right` marks the right ones of its hits, best first.

    `source` and `target` are the conversations that it comes from and was asked of, "" where it has none.
    """

    kind: str
    text: str
    strength: Strength
    right: NDArray[np.bool_]
    source: str = ""
    target: str = ""
    fitting: bool = True
    answerable: bool = False


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dataset", required=True, type=Path, metavar="FILE")
    _encoders.add_argument(parser)


def run(options: dict[str, Any]) -> Report:
    conversations = read_dataset(options["dataset"])
    report = Report("calibrate", settings={"dataset": options["dataset"].name})
    with _encoders.encoder_for(options), scratch_database():
        report.settings["embedder"] = settings.IZZY_EMBEDDER
        asked = [*_conversations(conversations), *_notes()]
    report.settings["questions"] = sum(one.kind == "own" for one in asked)
    fitted = {
        name: _fitted(one for one in asked if name not in (one.source, one.target))
        for name in dict.fromkeys(one.source for one in asked if one.kind == "own")
    }
    table = report.section("Fitted", ["without", "best", "fall", "evidence", "rivals", "offset"])
    for name, calibration in fitted.items():
        table.add(name, *astuple(calibration))
    whole = _fitted(asked)
    table.add("nothing left out", *astuple(whole))
    table.add("in use", *astuple(CALIBRATION))
    _figures(report, "fitted without the conversation", asked, lambda one: fitted.get(one.target, whole))
    _figures(report, "in use", asked, lambda _: CALIBRATION)
    return report


def _conversations(conversations: list[Conversation]) -> list[Asked]:
    users: dict[str, UUID] = {}
    speakers: dict[str, list[str]] = {}
    for conversation in conversations:
        user = make_user(conversation.name)
        users[conversation.name] = user.pk
        speakers[conversation.name] = sorted({message["speaker"] for message in conversation.messages})
        ingest(api_client(user), conversation, Run())
    _encoders.side_vectors_make()
    asked = [
        _ask(users[target], "nonsense", text, target=target, fitting=place % 2 == 0)
        for place, text in enumerate(NONSENSE)
        for target in users
    ]
    for conversation in conversations:
        name = conversation.name
        for question in conversation.questions:
            text, wanted = question.text, question.evidence
            asked.append(
                _ask(users[name], "own", text, wanted, source=name, target=name, answerable=True)
            )
            for other in users.keys() - {name}:
                renamed = text  # about the people there: the hardest one that has no answer among what they said
                for speaker, another in zip(speakers[name], speakers[other], strict=False):
                    renamed = re.sub(rf"\b{re.escape(speaker)}\b", another, renamed)
                asked.append(_ask(users[other], "other", text, source=name, target=other))
                asked.append(_ask(users[other], "renamed", renamed, source=name, target=other))
    return [one for one in asked if one is not None]


def _notes() -> list[Asked]:
    """All notes of the invented person and some at random, with what is said to her assistant."""
    draw = random.Random(1)
    collections = [list(known_notes())]
    collections += [draw.sample(list(known_notes()), size) for size in SIZES for _ in range(DRAWS)]
    asked = []
    for number, notes in enumerate(collections):
        user = make_user(f"notes{number}")
        drafts: Any = [{"content": note.text} for note in notes]
        made = memory_bulk_create(user_id=user.pk, drafts=drafts)
        _encoders.side_vectors_make()
        ids = {note.key: str(row.pk) for note, row in zip(notes, made, strict=True)}
        for utterance in messages():
            if utterance.kind == "follow-up":
                continue  # means nothing without the talk before it, which search does not see
            right = {ids[key] for key in utterance.wanted | utterance.fitting if key in ids}
            answerable = bool(utterance.wanted & ids.keys())
            fitting = not utterance.held_back
            asked.append(
                _ask(user.pk, "notes", utterance.talk[-1], right, answerable=answerable, fitting=fitting)
            )
        asked += [_ask(user.pk, "nonsense", text, fitting=n % 2 == 0) for n, text in enumerate(NONSENSE)]
    return [one for one in asked if one is not None]


def _ask(
    user_id: UUID, kind: str, text: str, right: Collection[str] = (), **fields: Any
) -> Asked | None:
    """The hits of a question; `right` names the right ones by their id or external id. None where nothing is found."""
    with scored(user_id, text) as (head, rows, query, scores):
        if query.is_empty:
            return None
        places = best_places(scores.total, rows.features["document"], DEPTH)
        strength = strength_of(places, rows, query, scores, head)
        passages = rows.ids[places].tolist()
    known = Passage.objects.filter(pk__in=passages if right else []).values_list(
        "pk", "source_id", "external_id"
    )
    names = {key: {str(name), external} for key, name, external in known}
    marked = np.array([not names.get(key, set()).isdisjoint(right) for key in passages])
    return Asked(kind, text, strength, marked, **fields)


def _fitted(asked: Iterable[Asked]) -> Calibration:
    """The most likely calibration, going by what is for fitting."""
    kinds: dict[str, list[Asked]] = defaultdict(list)
    for one in asked:
        if one.fitting:
            kinds[one.kind].append(one)
    rows, right, weights = [], [], []
    for kind, group in kinds.items():
        for one in group:
            strength, number = one.strength, len(one.right)
            known = np.array([strength.best, 0, strength.evidence, -strength.rivals, 1])
            rows.append(np.tile(known, (number, 1)))
            rows[-1][:, 1] = -strength.behind
            right.append(one.right)
            weights.append(np.full(number, MASS[kind] / len(group)))
    return Calibration(*logistic(np.concatenate(rows), np.concatenate(right), np.concatenate(weights)))


def _figures(
    report: Report, title: str, asked: Sequence[Asked], by: Callable[[Asked], Calibration]
) -> None:
    """The tables of one way to score; the aims are about the score in use."""
    scores = {
        kind: [(one, one.strength.score(by(one))) for one in asked if one.kind == kind] for kind in MASS
    }
    table = report.section(
        f"Score {title}: the best hit",
        ["conversation", "questions", "area under curve", "worth showing %"],
    )
    best = {kind: np.array([values[0] for _, values in found]) for kind, found in scores.items()}
    for kind in ("own", "other", "renamed", "nonsense"):
        area = None if kind == "own" else area_under_curve(best["own"], best[kind])
        table.add(kind, len(best[kind]), area, 100 * float((best[kind] >= WORTH_SHOWING).mean()))
    bands = report.section(
        f"Score {title}: share of right hits, by score", ["hits", *(f"{at:.2f} ± 0.05" for at in BANDS)]
    )
    held = [(one, values) for one, values in scores["notes"] if not one.fitting]
    bands.add("first ten, own conversation", *(_right(scores["own"], at, DEPTH) for at in BANDS))
    bands.add("best, own conversation", *(_right(scores["own"], at, 1) for at in BANDS))
    bands.add(
        "first ten, own and another",
        *(_right([*scores["own"], *scores["other"]], at, DEPTH) for at in BANDS),
    )
    bands.add("first ten, notes", *(_right(held, at, DEPTH) for at in BANDS))
    notes = report.section(
        f"Score {title}: notes, messages held back from fitting",
        ["messages", "number", "worth showing %"],
    )
    for name, answerable in (
        ("with an answer, one of its hits is right and", True),
        ("without an answer, any hit is", False),
    ):
        shown = [
            (values >= WORTH_SHOWING) & (one.right | (not answerable))
            for one, values in held
            if one.answerable == answerable
        ]
        notes.add(name, len(shown), 100 * statistics.fmean(any(one) for one in shown) if shown else None)
    worst = max(scores["nonsense"], key=lambda pair: float(pair[1][0]))
    lists = [values for found in scores.values() for _, values in found]
    ties = statistics.fmean(bool((np.diff(values) == 0).any()) for values in lists)
    report.notes.append(
        f"{title}: the highest score of nonsense is {worst[1][0]:.2f} ({worst[0].text!r})"
    )
    right = _right(scores["own"], WORTH_SHOWING, DEPTH)
    report.aims |= {
        f"{title}: area under the curve at least {LEAST_AREA}": area_under_curve(
            best["own"], best["other"]
        )
        >= LEAST_AREA,
        f"{title}: of hits at {WORTH_SHOWING} ± {BAND} {BAND_RIGHT[0]:.0%} to {BAND_RIGHT[1]:.0%} are right": right
        is not None
        and BAND_RIGHT[0] <= right <= BAND_RIGHT[1],
        f"{title}: no nonsense is worth showing": bool(best["nonsense"].max() < WORTH_SHOWING),
        f"{title}: two hits score the same in at most {MOST_TIES:.0%} of lists": ties <= MOST_TIES,
    }


def _right(scored: Sequence[tuple[Asked, Floats]], at: float, depth: int) -> float | None:
    """The share of right ones among hits with about this score."""
    near = [one.right[:depth][np.abs(values[:depth] - at) <= BAND] for one, values in scored]
    hits = np.concatenate(near)
    return float(hits.mean()) if len(hits) else None


STEPS, RIDGE = 30, 1e-3


def logistic(
    features: Floats, wanted: NDArray[np.bool_], weight: Floats, ridge: float = RIDGE
) -> list[float]:
    """The most likely factors by Newton's method, held back from extremes by `ridge`."""
    found = np.zeros(features.shape[1])
    for _ in range(STEPS):
        share = 1 / (1 + np.exp(-np.clip(features @ found, -30, 30)))
        slope = features.T @ (weight * (wanted - share)) - ridge * found
        curve = (features * (weight * share * (1 - share))[:, None]).T @ features
        found += np.linalg.solve(curve + ridge * np.eye(len(found)), slope)
    return [float(factor) for factor in found]


def area_under_curve(right: Floats, wrong: Floats) -> float:
    """How often a right one is above a wrong one, of all pairs; half a time where they are even."""
    wrong = np.sort(wrong)
    below = np.searchsorted(wrong, right, "left") + np.searchsorted(wrong, right, "right")
    return float(below.mean() / (2 * len(wrong)))
