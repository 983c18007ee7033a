"""A linear adapter turns an encoder's vector of a message towards those of the notes that matter to it.

An encoder says which texts are about the same. A note matters to more than that: an allergy to a restaurant, a timid dog to
fireworks. Some thousand notes of invented people with the messages that each of them matters to (`matters/*.json` and
`matters/people/*.json`, a file a language, written for this) teach which way it is from one to the other: a matrix by which, of some notes, each message's own is the most likely
(softmax of cosines, as in InfoNCE), starting from none at all and held back to it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from apps.search.embedders.base import Matrix, unit_rows

EXAMPLES = Path(__file__).parent / "matters"
SHARPNESS = 10.0
"""Log-odds of a cosine of 1."""
STEPS, BATCH, PACE = 300, 512, 1e-3
"""Steps of Adam, with so many messages each, slowing down at the end; their notes are those that each is told from."""
HELD_BACK = 0.01
"""The slope of the matrix towards that which changes nothing, for each unit that it is away from it."""
SPREAD = 10.0
"""Standard deviations of chance cosines from `noise` to `match`, as `recall` reads the calibration of a space."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Notes, messages, and of each message the place of the note that matters to it."""

    notes: Sequence[str]
    messages: Sequence[str]
    noted: Sequence[int]


def example_notes(language: str = "*", most: int | None = None) -> Examples:
    """The examples of a language, or of all; those of `most` notes spread over them."""
    rows = [
        (row["note"], row["messages"])
        for path in sorted(EXAMPLES.glob(f"{language}.json"))
        for row in json.loads(path.read_text(encoding="utf-8"))
    ]
    for person in example_people(language):
        own: list[list[str]] = [[] for _ in person["notes"]]
        for said in person["messages"]:
            own[said["note"]].append(said["text"])
        rows += zip(person["notes"], own, strict=True)
    rows = rows[:: -(-len(rows) // (most or len(rows)))]
    pairs = [(text, place) for place, (_, messages) in enumerate(rows) for text in messages]
    texts, places = zip(*pairs, strict=True)
    return Examples([note for note, _ in rows], texts, places)


def example_people(language: str = "*") -> list[dict[str, Any]]:
    """People of a language, or of all: `notes` of each with the `occasions` on which each matters, and `messages`, with the place of
    the `note` that matters to each, and of those that do so `also`; the others do not. None matters to those that are `idle`, though
    they come near to some. `talks` of a message before, its answer and a newest message have a `note` and `also` as messages do, or None."""
    files = sorted((EXAMPLES / "people").glob(f"{language}.json"))
    return [person for path in files for person in json.loads(path.read_text(encoding="utf-8"))]


@dataclass(frozen=True, slots=True)
class Adapter:
    """`matrix`, (dimension, dimension), for vectors of messages, None of an encoder that came taught; the calibration of cosines
    between what it gives and notes."""

    matrix: Matrix | None
    noise: float
    match: float

    def adapted(self, messages: Matrix) -> Matrix:
        """The unit vectors to look for notes with, a row for each message."""
        return messages if self.matrix is None else unit_rows(messages @ self.matrix)


def adapter_of(notes: Matrix, messages: Matrix, noted: Sequence[int]) -> Adapter:
    """The adapter that vectors of notes and of messages teach; `noted` is the row of each message's note.

    The same each time: what is drawn does not depend on chance.
    """
    same = np.eye(notes.shape[1], dtype=np.float32)
    matrix, speed, spread = same.copy(), np.zeros_like(same), np.zeros_like(same)
    own, draw = np.asarray(noted), np.random.default_rng(0)
    for step in range(1, STEPS + 1):
        drawn = draw.integers(0, len(messages), BATCH)
        turned = messages[drawn] @ matrix
        length = np.linalg.norm(turned, axis=1, keepdims=True) + 1e-9
        unit = turned / length
        among, place = np.unique(own[drawn], return_inverse=True)
        odds = np.exp(SHARPNESS * (unit @ notes[among].T))
        shares = odds / odds.sum(axis=1, keepdims=True)
        shares[np.arange(BATCH), place] -= 1
        away = SHARPNESS / BATCH * (shares @ notes[among])
        away = (away - unit * (away * unit).sum(axis=1, keepdims=True)) / length
        slope = messages[drawn].T @ away + HELD_BACK * (matrix - same)
        speed, spread = 0.9 * speed + 0.1 * slope, 0.999 * spread + 0.001 * slope**2
        pace = PACE * min(1, 3 * (1 - step / STEPS)) / (1 - 0.9**step)
        matrix -= pace * speed / (np.sqrt(spread / (1 - 0.999**step)) + 1e-9)
    return Adapter(matrix, *calibration(unit_rows(messages @ matrix) @ notes.T))


def calibration(cosines: Matrix) -> tuple[float, float]:
    """`noise` and `match` of cosines of messages with notes, of which nearly all are none of a message's own."""
    noise = float(cosines.mean())
    return noise, noise + SPREAD * float(cosines.std())
