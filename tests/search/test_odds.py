"""The scores of what might come up unasked, by the evidence for it."""

import numpy as np
import pytest
from django.conf import settings

from apps.search.proactive.odds import (
    ABOUT,
    ADAPTED,
    AGAINST,
    BESIDE,
    COUNTED,
    ENCODED_OCCASION,
    ENCODER,
    EVIDENCE,
    MANY,
    MEANING,
    MENTIONED,
    OCCASION_WORDS,
    SIMILAR,
    STATIC,
    WORDS,
    Observed,
    Weights,
    scores_of,
)

NOTHING = -2.5  # stands out


PERSONAL = 3.0
"""A concern than which none is greater."""


def scores(
    weights: Weights, *rows: dict[str, float], concern: float = PERSONAL, number: int = 1
) -> list[float]:
    """The scores of some documents by the evidence that each has, the best of so many."""
    evidence = np.full((len(rows), len(EVIDENCE)), NOTHING, dtype=np.float32)
    evidence[:, [WORDS, MENTIONED, OCCASION_WORDS]] = 0
    for place, row in enumerate(rows):
        for name, value in row.items():
            evidence[place, EVIDENCE.index(name)] = value
    against = np.array([1.0, 0.0, concern, concern], dtype=np.float32)
    assert len(against) == len(AGAINST)
    every = len(rows)
    seen = Observed(evidence, against, np.arange(every), [True] * every, ("",) * every, weights, number)
    return [float(score) for score in scores_of(seen)]


def score(weights: Weights, **evidence: float) -> float:
    """The score of one document, for a message that could not be more personal."""
    return scores(weights, evidence)[0]


@pytest.mark.parametrize("weights", [STATIC, COUNTED, SIMILAR, ENCODER])
def test_a_note_for_which_nothing_speaks_stays_away_however_personal_the_message(
    weights: Weights,
) -> None:
    assert score(weights) == 0
    assert score(weights, meaning=0.1) > ABOUT
    for kind in (WORDS, MENTIONED):
        spoken = score(weights, **{EVIDENCE[kind]: 0.1})
        weighs = weights.evidence[kind] > 0  # what weighs nothing says nothing
        assert spoken > ABOUT if weighs else spoken == 0


@pytest.mark.parametrize("kind", [ENCODED_OCCASION, ADAPTED])
def test_what_nearly_stands_out_in_the_encoders_space_speaks(kind: int) -> None:
    name = EVIDENCE[kind]
    assert score(ENCODER, **{name: ENCODER.audible + 0.1}) > ABOUT
    assert score(ENCODER, **{name: ENCODER.audible - 0.1}) == 0
    assert score(ENCODER, **{EVIDENCE[MEANING]: -0.1}) == 0


@pytest.mark.parametrize("weights", [COUNTED, SIMILAR, ENCODER])
def test_of_two_notes_that_a_message_names_the_better_does_not_keep_the_other_away(
    weights: Weights,
) -> None:
    other = {"mentioned": 1.0, "words": 0.5, "meaning": 1.5, "adapted": 1.5}
    better = {"mentioned": 1.5, "words": 0.7, "meaning": 2.5, "adapted": 2.5}
    best, second = scores(weights, better, other)
    assert best > second > ABOUT
    assert second < scores(weights, other)[0]


@pytest.mark.parametrize("weights", [COUNTED, SIMILAR, ENCODER])
@pytest.mark.parametrize("concern", [-1.0, 0.0, 1.5])
def test_among_many_notes_it_takes_more(weights: Weights, concern: float) -> None:
    near = {"mentioned": 0.5, "words": 0.3, "meaning": 1.0, "adapted": 1.0}
    few, many = (scores(weights, near, concern=concern, number=of)[0] for of in (15, MANY))
    assert many < few
    assert scores(weights, near, concern=concern, number=1)[0] == few
    assert scores(weights, near, concern=concern, number=100 * MANY)[0] == many


def test_the_documented_weights_are_those_in_use() -> None:
    every = (STATIC, COUNTED, SIMILAR, ENCODER)
    tables: list[dict[str, list[float]]] = []
    for line in (settings.BASE_DIR / "docs/search.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 6 and cells[1] == "alone":
            tables.append({})
        elif len(cells) == 6 and tables and not cells[1].startswith("-"):
            tables[-1][cells[0]] = [_number(cell) for cell in cells[1:5]]
    which, wanted = tables
    names = [name.replace("_", " ") for name in (*EVIDENCE, *AGAINST, *BESIDE)]
    first = [(*by.evidence, *by.against) for by in every]
    for place, name in enumerate(names[: len(first[0])]):
        assert which.get(name, [0.0] * len(every)) == [weights[place] for weights in first]
    for place, name in enumerate(names):
        assert wanted.get(name, [0.0] * len(every)) == [by.wanted[place] for by in every]


def _number(cell: str) -> float:
    return float(cell.replace("−", "-")) if cell not in ("–", "") else 0.0
