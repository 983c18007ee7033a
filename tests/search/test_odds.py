"""The scores of what might come up unasked, by the evidence for it."""

import numpy as np
import pytest

from apps.search.proactive.odds import (
    ABOUT,
    ADAPTED,
    AGAINST,
    ENCODED_OCCASION,
    ENCODER,
    EVIDENCE,
    MEANING,
    MENTIONED,
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
    row[0, [WORDS, MENTIONED]] = 0
    for name, value in evidence.items():
        row[0, EVIDENCE.index(name)] = value
    against = np.array([1.0, 0.0, 4.0, 4.0], dtype=np.float32)
    assert len(against) == len(AGAINST)
    seen = Observed(row, against, np.array([1]), [True], ("",), weights)
    return float(scores_of(seen)[0])


@pytest.mark.parametrize("weights", [STATIC, SIMILAR, ENCODER])
def test_a_note_for_which_nothing_speaks_stays_away_however_personal_the_message(
    weights: Weights,
) -> None:
    assert score(weights) == 0
    assert score(weights, meaning=0.1) > 0
    for kind in (WORDS, MENTIONED):  # what weighs nothing says nothing
        assert (score(weights, **{EVIDENCE[kind]: 0.1}) > 0) == (weights.evidence[kind] > 0)


@pytest.mark.parametrize("kind", [ENCODED_OCCASION, ADAPTED])
def test_what_nearly_stands_out_in_the_encoders_space_speaks(kind: int) -> None:
    name = EVIDENCE[kind]
    assert score(ENCODER, **{name: ENCODER.audible + 0.1}) > ABOUT
    assert score(ENCODER, **{name: ENCODER.audible - 0.1}) == 0
    assert score(ENCODER, **{EVIDENCE[MEANING]: -0.1}) == 0
