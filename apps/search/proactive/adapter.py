"""A linear adapter turns an encoder's vector of a message towards those of the notes that matter to it.

An encoder says which texts are about the same. A note matters to more than that: an allergy to a restaurant, a timid dog to
fireworks. Some thousand notes of invented people with the messages that each of them matters to (`matters.json`, written for this)
teach which way it is from one to the other: ridge regression of the notes' vectors, less what all notes have in common.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from apps.search.embedders.base import Matrix, unit_rows

LANGUAGE = "en"  # of the examples
EXAMPLES = Path(__file__).parent / "matters.json"
RIDGE = 30.0
SPREAD = 10.0
"""Standard deviations of chance cosines from `noise` to `match`, as `recall` reads the calibration of a space."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Notes, messages, and of each message the place of the note that matters to it."""

    notes: Sequence[str]
    messages: Sequence[str]
    noted: Sequence[int]


def example_notes(most: int | None = None) -> Examples:
    """The examples, or those of `most` notes spread over all."""
    rows = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    rows = rows[:: -(-len(rows) // (most or len(rows)))]
    pairs = [(text, place) for place, row in enumerate(rows) for text in row["messages"]]
    texts, places = zip(*pairs, strict=True)
    return Examples([row["note"] for row in rows], texts, places)


@dataclass(frozen=True, slots=True)
class Adapter:
    """`matrix`, (dimension, dimension), for vectors of messages; the calibration of cosines between what it gives and notes."""

    matrix: Matrix
    noise: float
    match: float

    def adapted(self, messages: Matrix) -> Matrix:
        """The unit vectors to look for notes with, a row for each message."""
        return unit_rows(messages @ self.matrix)


def adapter_of(notes: Matrix, messages: Matrix, noted: Sequence[int]) -> Adapter:
    """The adapter that vectors of notes and of messages teach; `noted` is the row of each message's note."""
    rows, known = messages.astype(np.float64), notes.astype(np.float64)
    wanted = (known - known.mean(axis=0))[list(noted)]
    matrix = np.linalg.solve(rows.T @ rows + RIDGE * np.eye(rows.shape[1]), rows.T @ wanted)
    # Nearly all notes are none of a message's own.
    cosines = unit_rows(rows @ matrix) @ known.T
    noise, spread = float(cosines.mean()), float(cosines.std())
    return Adapter(matrix.astype(np.float32), noise, noise + SPREAD * spread)
