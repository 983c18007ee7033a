"""A logistic regression, and the area under the curve."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

STEPS, RIDGE = 30, 1e-3


def logistic(features: Floats, wanted: NDArray[np.bool_], weight: Floats) -> list[float]:
    """The most likely factors by Newton's method, barely held back from extremes."""
    found = np.zeros(features.shape[1])
    for _ in range(STEPS):
        share = 1 / (1 + np.exp(-np.clip(features @ found, -30, 30)))
        slope = features.T @ (weight * (wanted - share)) - RIDGE * found
        curve = (features * (weight * share * (1 - share))[:, None]).T @ features
        found += np.linalg.solve(curve + RIDGE * np.eye(len(found)), slope)
    return [float(factor) for factor in found]


def area_under_curve(right: Floats, wrong: Floats) -> float:
    """How often a right one is above a wrong one, of all pairs; half a time where they are even."""
    wrong = np.sort(wrong)
    below = np.searchsorted(wrong, right, "left") + np.searchsorted(wrong, right, "right")
    return float(below.mean() / (2 * len(wrong)))
