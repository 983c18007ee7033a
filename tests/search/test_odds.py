"""The scores of what might come up unasked, by the evidence for it."""

import numpy as np
import pytest
from django.conf import settings

from apps.search.proactive.odds import (
    ABOUT,
    ADAPTED,
    AGAINST,
    COUNTED,
    ENCODED_OCCASION,
    ENCODER,
    EVIDENCE,
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


def score(weights: Weights, **evidence: float) -> float:
    """The score of one document, for a message that could not be more personal."""
    row = np.full((1, len(EVIDENCE)), NOTHING, dtype=np.float32)
    row[0, [WORDS, MENTIONED, OCCASION_WORDS]] = 0
    for name, value in evidence.items():
        row[0, EVIDENCE.index(name)] = value
    against = np.array([1.0, 0.0, 3.0, 3.0], dtype=np.float32)
    assert len(against) == len(AGAINST)
    seen = Observed(row, against, np.array([1]), [True], ("",), weights)
    return float(scores_of(seen)[0])


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


def test_the_documented_weights_are_those_in_use() -> None:
    rows = {}
    for line in (settings.BASE_DIR / "docs/search.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 6:
            rows[cells[0]] = cells[1:5]
    every = (STATIC, COUNTED, SIMILAR, ENCODER)
    for kind, name in enumerate(EVIDENCE):
        weighs = [by.evidence[kind] for by in every]
        assert [_number(cell) for cell in rows[name.replace("_", " ")]] == weighs
    for kind, name in enumerate(["always", "leaning"]):
        assert [_number(cell) for cell in rows[name]] == [by.against[kind] for by in every]
    concern = [tuple(map(_number, cell.split(", "))) for cell in rows["concern"]]
    assert concern == [tuple(weight for weight in by.against[2:] if weight) for by in every]


def _number(cell: str) -> float:
    return float(cell.replace("−", "-")) if cell != "–" else 0.0
