"""An encoder's vectors are taught by example which messages concern the user, and which notes matter to what.

It is learnt once, and anew where examples or these modules have changed, and kept with the space (`EmbeddingSpace.concern`).
"""

import logging
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np

from apps.search.backends import Space
from apps.search.embedders.base import Matrix, Vector
from apps.search.embedders.engines import encoder_knows
from apps.search.embedders.minilm import MiniLMEmbedder, weights_sum
from apps.search.kept import keep, kept_file
from apps.search.models import EmbeddingSpace
from apps.search.proactive import adapter, concern
from apps.search.proactive.adapter import Adapter, adapter_of, example_notes
from apps.search.proactive.concern import encoder_examples, encoder_lesson, examples_sum

logger = logging.getLogger(__name__)

MOST_NOTES = 5000
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
    """The lesson of the encoder of that name, which embeds some thousand examples for it. Raises what it raises.

    That of `minilm` is the same everywhere, and kept.
    """
    kept = _kept_file() if name == MiniLMEmbedder.name else None
    if kept is not None and kept.exists():
        lesson = EncoderLesson.unpacked(kept.read_bytes(), MiniLMEmbedder.dimension)
        if lesson is not None:
            return lesson
    texts, personal = encoder_examples(name)
    examples = example_notes("*" if encoder_knows(name, []) else "en", MOST_NOTES)
    every = list(dict.fromkeys((*texts, *examples.messages)))  # many teach both
    vectors = dict(zip(every, queries(every), strict=True))
    sounds = encoder_lesson(np.stack([vectors[text] for text in texts]), personal)
    messages = np.stack([vectors[text] for text in examples.messages])
    lesson = EncoderLesson(sounds, adapter_of(documents(examples.notes), messages, examples.noted))
    if kept is not None:
        try:
            keep(kept, lambda file: file.write(lesson.packed()))
        except OSError:
            logger.info("%s cannot be kept: each database learns it anew", kept.name)
    return lesson


def _kept_file() -> Path:
    made = f"{weights_sum():08x}-{_taught_by().hex()}-{MOST_NOTES}-{concern.ENCODER_EXAMPLES}"
    return kept_file(f"minilm-lesson-{made}.bin")


def side_lesson(space: Space) -> EncoderLesson | None:
    """The lesson of the encoder's vectors; None before they were taught it."""
    key = space.id, space.dimension
    if key not in _lessons:
        packed = EmbeddingSpace.objects.filter(pk=space.id).values_list("concern", flat=True).first()
        lesson = EncoderLesson.unpacked(bytes(packed or b""), space.dimension)
        if lesson is None:
            return None
        _lessons[key] = lesson
    return _lessons[key]
