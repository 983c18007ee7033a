"""How far a message concerns the one who wrote it: whether its answer depends on what is known of them.

Most of what people say to an assistant has nothing to do with what it knows of them: sums, translations, jokes, thanks, the
capital of a country. They say it in other words than what concerns their own lives ("what should I…", "book us…", "when is
Anna's…"). Some thousands of messages of both kinds (`messages/*.json`, a file a language), written for this or for the invented
people of `benchmarks/people/`, and those to which a note matters (`adapter`), teach single words and pairs of neighbours how much
they tell: ridge regression on +1 and -1. What was learnt is kept beside the packages, for it takes two or three seconds. In a language without
such a file all messages are alike.
"""

import json
import math
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.search.embedders.base import Matrix, Vector
from apps.search.embedders.engines import encoder_knows
from apps.search.kept import arrays_kept, kept_file
from apps.search.proactive.adapter import EXAMPLES, example_notes, example_people
from apps.search.text import analysis
from apps.search.text.analysis import split_words

FOLDER = Path(__file__).parent / "messages"
PERSONAL, IDLE = "personal", "idle"
MAX_WORDS = 40
MARKS = '?":=!%'
RIDGE = 0.3
OFTEN = 2
"""Messages that must have a word before it is learnt; three times as many words stand in one alone."""
ENCODER_RIDGE = 1.0
ENCODER_EXAMPLES = 4000
"""Messages, spread over all, that an encoder's vectors learn from: each costs it as much as a note."""
STEPS = 60
"""Steps of conjugate gradients at most; 30 do."""


@cache
def example_messages(
    language: str = "*", *, near: bool = False
) -> tuple[tuple[str, ...], tuple[bool, ...]]:
    """The messages that teach, and which of them are personal; of all languages unless one is named. Those that only come `near` to
    somebody's notes are among them where it is said."""
    texts: dict[str, bool] = {}
    for path in sorted(FOLDER.glob(f"{language}.json")):
        kinds = json.loads(path.read_text(encoding="utf-8"))
        texts |= {text: kind == PERSONAL for kind in (PERSONAL, IDLE) for text in kinds[kind]}
        texts = dict.fromkeys(example_notes(path.stem).messages, True) | texts
        if near:
            for person in example_people(path.stem):
                texts = dict.fromkeys(person["idle"], False) | texts
    return tuple(texts), tuple(texts.values())


def encoder_examples(name: str) -> tuple[tuple[str, ...], tuple[bool, ...]]:
    """As many of them as the encoder of that name learns from, of both kinds, in languages that it knows."""
    taught = dict(zip(*example_messages("*" if encoder_knows(name, []) else "en"), strict=True))
    kinds = [[text for text, own in taught.items() if own is kind] for kind in (True, False)]
    some = [text for kind in kinds for text in kind[:: -(-2 * len(kind) // ENCODER_EXAMPLES)]]
    return tuple(some), tuple(taught[text] for text in some)


@dataclass(frozen=True, slots=True)
class Lesson:
    """How much each word, and each pair of words, speaks for a personal message; `offset` is what any message has.

    They stand by their checksums (`_sums`), in ascending order: as words they would take each process 9 MB.
    """

    grams: NDArray[np.uint32]
    weights: Vector
    offset: float

    def concern(self, text: str) -> float:
        """About +1 for a message whose answer depends on the user, about -1 for one that is the same for everybody."""
        found = _sums(_grams(text))
        places = np.minimum(np.searchsorted(self.grams, found), len(self.grams) - 1)
        known = self.grams[places] == found
        return self.offset + float(self.weights[places[known]].sum()) / math.sqrt(len(found))


@cache
def whole_lesson(*, near: bool) -> Lesson:
    """The lesson of all example messages, read where it is kept. Those that only come `near` to notes belong to it beside an encoder:
    without one that knows what a question is about, it would keep quiet about some that do concern the user."""
    parts = arrays_kept(_kept_file(near), lambda: _parts_of(lesson_of(*example_messages(near=near))))
    return Lesson(parts["grams"], parts["weights"], float(parts["offset"]))


def _parts_of(lesson: Lesson) -> dict[str, NDArray[Any]]:
    return {"grams": lesson.grams, "weights": lesson.weights, "offset": np.array(lesson.offset)}


def _kept_file(near: bool) -> Path:
    sums = examples_sum()
    for path in (Path(__file__), Path(analysis.__file__)):
        sums = zlib.crc32(path.read_bytes(), sums)
    return kept_file(f"concern{'-near' * near}-{sums:08x}.npz")


def examples_sum() -> int:
    """A checksum of all examples."""
    sums = 0
    for path in (*sorted(EXAMPLES.rglob("*.json")), *sorted(FOLDER.glob("*.json"))):
        sums = zlib.crc32(path.read_bytes(), sums)
    return sums


def lesson_of(texts: Sequence[str], personal: Sequence[bool]) -> Lesson:
    """The lesson of some messages, of which it is said whether they are personal."""
    wanted = np.where(personal, 1.0, -1.0)
    offset = float(wanted.mean())
    grams = [_grams(text) for text in texts]
    times = Counter(gram for each in grams for gram in each)
    places = {gram: place for place, gram in enumerate(g for g, n in times.items() if n >= OFTEN)}
    known = [[places[gram] for gram in each if gram in places] for each in grams]
    columns = np.array([place for each in known for place in each])
    sizes = [len(each) for each in known]
    rows = np.repeat(np.arange(len(grams)), sizes)
    values = np.repeat([1 / math.sqrt(len(each)) for each in grams], sizes)
    weights = np.zeros(len(places))
    left = np.asarray(
        np.bincount(columns, values * (wanted - offset)[rows], len(places)), dtype=np.float64
    )
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
    sums = _sums(list(places))
    order = np.argsort(sums, kind="stable")
    return Lesson(sums[order], weights[order].astype(np.float32), offset)


def _sums(grams: Sequence[str]) -> NDArray[np.uint32]:
    """Of 80,000 one in 50,000 words that were not learnt has the checksum of one that was."""
    return np.array([zlib.crc32(gram.encode()) for gram in grams], dtype=np.uint32)


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


def encoder_concern(lesson: Vector, message: Vector) -> float:
    """`Lesson.concern` by an encoder's vector of a message."""
    return float(lesson[:-1] @ message + lesson[-1])
