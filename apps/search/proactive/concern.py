"""How far a message sounds as if its answer depended on the one who wrote it.

Most of what people say to an assistant has nothing to do with what it knows of them: sums, translations, jokes, thanks, the
capital of a country. They say it in other words than what concerns their own lives ("what should I…", "book us…", "when is
Anna's…"). Some thousands of messages of both kinds, written for this (`messages/*.json`, a file a language), teach single words and
pairs of neighbours how much they tell: ridge regression on +1 and -1, a few hundredths of a second once a process. In a
language without such a file all messages are alike.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from apps.search.embedders.base import Matrix, Vector
from apps.search.text.analysis import split_words

FOLDER = Path(__file__).parent / "messages"
PERSONAL, IDLE = "personal", "idle"
MAX_WORDS = 40
MARKS = '?":=!%'
RIDGE = 0.1
ENCODER_RIDGE = 1.0
STEPS = 60
"""Steps of conjugate gradients at most; 30 do."""


@cache
def example_messages() -> tuple[tuple[str, ...], tuple[bool, ...]]:
    """The messages that teach, and which of them are personal; of all languages."""
    texts: dict[str, bool] = {}
    for path in sorted(FOLDER.glob("*.json")):
        kinds = json.loads(path.read_text(encoding="utf-8"))
        texts |= {text: kind == PERSONAL for kind in (PERSONAL, IDLE) for text in kinds[kind]}
    return tuple(texts), tuple(texts.values())


@dataclass(frozen=True, slots=True)
class Lesson:
    """How much each word, and each pair of words, speaks for a personal message; `offset` is what any message has."""

    weights: Mapping[str, float]
    offset: float

    def concern(self, text: str) -> float:
        """About +1 for a message whose answer depends on the user, about -1 for one that is the same for everybody."""
        found = _grams(text)
        return self.offset + sum(self.weights.get(gram, 0.0) for gram in found) / math.sqrt(len(found))


def concern_of(text: str) -> float:
    """`Lesson.concern`, by all example messages."""
    return _whole_lesson().concern(text)


@cache
def _whole_lesson() -> Lesson:
    return lesson_of(*example_messages())


def lesson_of(texts: Sequence[str], personal: Sequence[bool]) -> Lesson:
    """The lesson of some messages, of which it is said whether they are personal."""
    wanted = np.where(personal, 1.0, -1.0)
    offset = float(wanted.mean())
    grams = [_grams(text) for text in texts]
    places = {gram: place for place, gram in enumerate(dict.fromkeys(g for each in grams for g in each))}
    columns = np.array([places[gram] for each in grams for gram in each])
    sizes = np.array([len(each) for each in grams])
    rows = np.repeat(np.arange(len(grams)), sizes)
    values = np.repeat(1 / np.sqrt(sizes), sizes)
    weights = np.zeros(len(places))
    sums = np.bincount(columns, values * (wanted - offset)[rows], len(places))
    left = np.asarray(sums, dtype=np.float64)
    step, size = left.copy(), float(left @ left)
    for _ in range(STEPS):  # conjugate gradients: the matrix itself would have millions of cells
        along = np.bincount(rows, values * step[columns], len(grams))
        bent = np.bincount(columns, values * along[rows], len(places)) + RIDGE * step
        far = size / float(step @ bent)
        weights += far * step
        left = left - far * bent
        before, size = size, float(left @ left)
        if size < 1e-8:
            break
        step = left + size / before * step
    return Lesson(dict(zip(places, weights.tolist(), strict=True)), offset)


def _grams(text: str) -> list[str]:
    """The distinct words of a text and pairs of neighbours, its ends among them, its marks, and about how long it is.

    All numbers are alike.
    """
    words = ["0" if word.isdigit() else word for word in split_words(text)[:MAX_WORDS]]
    ends = ["^", *words, "$"]
    pairs = (f"{one} {two}" for one, two in pairwise(ends))
    marks = (mark for mark in MARKS if mark in text)
    return list(dict.fromkeys([*words, *pairs, *marks, f"# {len(words).bit_length()}"]))


def encoder_lesson(vectors: Matrix, personal: Sequence[bool]) -> Vector:
    """The lesson of an encoder's vectors of messages: weights and offset, (dimension + 1,)."""
    wanted = np.where(personal, 1.0, -1.0)
    rows = vectors.astype(np.float64)
    middle, offset = rows.mean(axis=0), float(wanted.mean())
    rows = rows - middle
    weights = np.linalg.solve(
        rows.T @ rows + ENCODER_RIDGE * np.eye(rows.shape[1]), rows.T @ (wanted - offset)
    )
    return np.append(weights, offset - middle @ weights).astype(np.float32)


def encoder_concern(lesson: Vector | None, message: Vector) -> float | None:
    """`concern_of` by an encoder's vector of a message; None where the lesson has not been learnt, or not in its dimension."""
    if lesson is None or len(lesson) != len(message) + 1:
        return None
    return float(lesson[:-1] @ message + lesson[-1])
