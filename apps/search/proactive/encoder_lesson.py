"""An encoder's vectors are taught by example which messages concern the user, and which notes matter to what.

It is learnt once, and anew where examples or these modules have changed, and kept with the space (`EmbeddingSpace.concern`).
Those that Izzy computes come taught (`embedders/taught.py`); with their space stands only what tells by which of its versions the vectors are.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np

from apps.search.backends import Space
from apps.search.embedders.base import EmbedderDown, Matrix, Vector
from apps.search.embedders.engines import encoder_knows, taught_mark
from apps.search.embedders.taught import taught
from apps.search.models import EmbeddingSpace
from apps.search.proactive import adapter, concern
from apps.search.proactive.adapter import Adapter, adapter_of, example_notes
from apps.search.proactive.concern import encoder_examples, encoder_lesson, examples_sum

MOST_NOTES = 8000
"""Notes that an encoder learns from at most: each costs it as much as five of the user's."""

Embed = Callable[[Sequence[str]], Matrix]
_lessons: "dict[tuple[int, int], EncoderLesson]" = {}  # by side space and its dimension


@dataclass(frozen=True, slots=True)
class EncoderLesson:
    """`concern` is weights and offset, (dimension + 1,)."""

    concern: Vector
    adapter: Adapter

    def packed(self) -> bytes:
        turn = self.adapter
        assert turn.matrix is not None  # noqa: S101 - of one that learns here
        numbers = np.concatenate([self.concern, [turn.noise, turn.match], turn.matrix.ravel()])
        return _taught_by() + numbers.astype("<f4").tobytes()

    @classmethod
    def unpacked(cls, packed: bytes, dimension: int) -> Self | None:
        """The lesson that `packed` gave; None of another dimension, or of other examples than there are now."""
        mark, rest = packed[: len(_taught_by())], packed[len(_taught_by()) :]
        if mark != _taught_by() or len(rest) != 4 * (dimension + 3 + dimension**2):
            return None
        sounds, scale, matrix = np.split(
            np.frombuffer(rest, dtype="<f4"), [dimension + 1, dimension + 3]
        )
        turn = Adapter(matrix.reshape(dimension, dimension), float(scale[0]), float(scale[1]))
        return cls(sounds, turn)


@cache
def _taught_by() -> bytes:
    """Tells what is learnt from, and how, from what was in another version."""
    sums = examples_sum()
    for path in (adapter.__file__, concern.__file__, __file__):
        sums = zlib.crc32(Path(path).read_bytes(), sums)
    return sums.to_bytes(4, "little")


def learn(name: str, *, queries: Embed, documents: Embed) -> EncoderLesson:
    """The lesson of the encoder of that name, which embeds some thousand examples for it. Raises what it raises."""
    texts, personal = encoder_examples(name)
    examples = example_notes("*" if encoder_knows(name, []) else "en", MOST_NOTES)
    every = list(dict.fromkeys((*texts, *examples.messages)))  # many teach both
    vectors = dict(zip(every, queries(every), strict=True))
    sounds = encoder_lesson(np.stack([vectors[text] for text in texts]), personal)
    messages = np.stack([vectors[text] for text in examples.messages])
    return EncoderLesson(sounds, adapter_of(documents(examples.notes), messages, examples.noted))


def has_learnt(space: EmbeddingSpace) -> bool:
    """Whether what its vectors have to be taught is there, and not of a version before."""
    return _lesson_of(space.name, bytes(space.concern or b""), space.dimension) is not None


def _lesson_of(name: str, packed: bytes, dimension: int) -> EncoderLesson | None:
    """The lesson of a space of which `packed` is kept; None of a version before, or where the encoder's cannot be read."""
    try:
        mark = taught_mark(name)
    except EmbedderDown:
        return None
    if not mark:
        return EncoderLesson.unpacked(packed, dimension)
    came = taught(name)
    turn = Adapter(None, came.noise, came.match)
    return EncoderLesson(came.concern, turn) if packed == mark else None


def side_lesson(space: Space) -> EncoderLesson | None:
    """The lesson of the encoder's vectors; None before they were taught it."""
    key = space.id, space.dimension
    if key not in _lessons:
        packed = EmbeddingSpace.objects.filter(pk=space.id).values_list("concern", flat=True).first()
        lesson = _lesson_of(space.name, bytes(packed or b""), space.dimension)
        if lesson is None:
            return None
        _lessons[key] = lesson
    return _lessons[key]
