"""An encoder's vectors are taught by example which messages concern the user, and which notes matter to what.

It is learnt once, when the notes have got their vectors, and kept with the space (`EmbeddingSpace.concern`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from apps.search.backends import Space
from apps.search.embedders.base import Matrix, Vector
from apps.search.models import EmbeddingSpace
from apps.search.proactive.adapter import Adapter, adapter_of, example_notes
from apps.search.proactive.concern import encoder_examples, encoder_lesson

MOST_NOTES = 2000
"""Notes that an encoder learns from at most: each costs it as much as five of the user's."""

Embed = Callable[[Sequence[str]], Matrix]
_lessons: "dict[tuple[int, int], EncoderLesson]" = {}  # by side space and its dimension


@dataclass(frozen=True, slots=True)
class EncoderLesson:
    """`concern` is weights and offset, (dimension + 1,)."""

    concern: Vector
    adapter: Adapter

    def packed(self) -> bytes:
        adapter = self.adapter
        scale = [adapter.noise, adapter.match]
        return np.concatenate([self.concern, scale, adapter.matrix.ravel()]).astype("<f4").tobytes()

    @classmethod
    def unpacked(cls, packed: bytes, dimension: int) -> Self | None:
        """The lesson that `packed` gave; None of another dimension, or of a version before."""
        if len(packed) != packed_size(dimension):
            return None
        numbers = np.frombuffer(packed, dtype="<f4")
        concern, scale, matrix = np.split(numbers, [dimension + 1, dimension + 3])
        adapter = Adapter(matrix.reshape(dimension, dimension), float(scale[0]), float(scale[1]))
        return cls(concern, adapter)


def packed_size(dimension: int) -> int:
    """Bytes of a lesson."""
    return 4 * (dimension + 3 + dimension**2)


def learn(name: str, *, queries: Embed, documents: Embed) -> EncoderLesson:
    """The lesson of the encoder of that name, which embeds some thousand examples for it. Raises what it raises."""
    texts, personal = encoder_examples(name)
    examples = example_notes(MOST_NOTES)
    adapter = adapter_of(documents(examples.notes), queries(examples.messages), examples.noted)
    return EncoderLesson(encoder_lesson(queries(texts), personal), adapter)


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
