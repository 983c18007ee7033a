"""The two vector spaces and the vectors of questions in them; remembers for a while that an encoder was down.

The base space is that of the bundled vectors, which are always at hand and made in the saving transaction. The side space is
that of the encoder which IZZY_EMBEDDER names: it may be down, slow or wrong, and then search goes by the base space alone.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Sequence
from enum import Enum, auto
from hashlib import blake2b

import numpy as np
from django.conf import settings

from apps.search.backends import Space
from apps.search.embedders.base import Embedder, EmbedderDown, Matrix, Vector
from apps.search.embedders.deadline import ANSWER_SECONDS, answered_within, is_late
from apps.search.embedders.engines import embedder_for, encoder_knows
from apps.search.embedders.own import OWN
from apps.search.embedders.static import DIMENSION, StaticEmbedder
from apps.search.models import EmbeddingSpace
from apps.search.text.analysis import detect_language

DOWN_SECONDS = 15.0
"""After a failure an encoder is left alone for this time, so that searches do not wait for it one by one."""
MAX_VECTORS = 512
TEXTS_IN_TIME = 10
"""Documents that Izzy's own encoders have the time of an answer for: a page may compare more."""
Role = EmbeddingSpace.Role


class Use(Enum):
    """The use of a text's vector: models have other prefixes for questions; Izzy's own have a tower for messages."""

    QUERY = auto()
    MESSAGE = auto()
    DOCUMENT = auto()


_down: dict[str, float] = {}
_vectors: OrderedDict[tuple[int, Use, bytes], Vector] = OrderedDict()
"""By side space, use and digest of the text: the words of a question do not stay in memory."""
_lock = threading.Lock()


def encoder_name() -> str:
    """The encoder that IZZY_EMBEDDER names beside the bundled vectors, "" for none."""
    name: str = settings.IZZY_EMBEDDER
    return "" if name == StaticEmbedder.name else name


def base_ensure() -> None:
    """The row of the base space, which every index begins with."""
    fixed = {"name": StaticEmbedder.name, "dimension": DIMENSION}
    scale = {"noise": StaticEmbedder.noise, "match": StaticEmbedder.match}
    EmbeddingSpace.objects.get_or_create(role=Role.BASE, defaults=fixed | scale)


def side_query(space: Space | None, text: str, languages: Collection[str]) -> Vector | None:
    """`side_vectors` of one question to somebody who writes in those languages; None also where the encoder does not know them."""
    if space is None or not can_ask(space, text, languages):
        return None
    vectors = side_vectors(space, [text], Use.QUERY)
    return None if vectors is None else np.asarray(vectors[0])


def can_ask(space: Space, text: str, languages: Collection[str] = ()) -> bool:
    """Whether the encoder knows the language of a question, and one of those in which its owner writes where that is known."""
    own = [detect_language(text)]
    return encoder_knows(space.name, own) and encoder_knows(space.name, languages or own)


def side_vectors(space: Space | None, texts: Sequence[str], use: Use) -> Matrix | None:
    """The vectors of questions, or of texts that are compared but not stored, in the side space, a row each; None where the
    encoder cannot answer, or none is stored yet.

    What was asked before is remembered, the others go to the encoder together: not while an index is locked. It is waited
    for ANSWER_SECONDS at most.
    """
    if space is None or not texts:
        return None
    if use is Use.MESSAGE and space.name not in OWN:
        use = Use.QUERY  # which may have been asked before
    keys = {text: (space.id, use, blake2b(text.encode(), digest_size=16).digest()) for text in texts}
    with _lock:
        known = {key: _vectors[key] for key in keys.values() if key in _vectors}
        for key in known:
            _vectors.move_to_end(key)
    new = [text for text, key in keys.items() if key not in known]
    if new:
        try:
            rows = _asked(space, new, use)
        except EmbedderDown:
            note_down(space.name)
            return None
        known |= {keys[text]: row for text, row in zip(new, rows, strict=True)}
    return np.stack([known[keys[text]] for text in texts])


def _asked(space: Space, texts: list[str], use: Use) -> Matrix:
    """The answer of an encoder in time; an answer that comes late is remembered too. Raises EmbedderDown."""
    embedder = embedder_asked(space.name)

    def ask() -> Matrix:
        asked = {
            Use.QUERY: embedder.embed_queries,
            Use.MESSAGE: embedder.embed_messages,
            Use.DOCUMENT: embedder.embed_documents,
        }
        rows = asked[use](texts)
        if rows.shape[1] != space.dimension:
            raise EmbedderDown(f"{space.name} gives {rows.shape[1]} numbers, not {space.dimension}.")
        digests = (blake2b(text.encode(), digest_size=16).digest() for text in texts)
        with _lock:
            _vectors.update(((space.id, use, one), row) for one, row in zip(digests, rows, strict=True))
            while len(_vectors) > MAX_VECTORS:
                _vectors.popitem(last=False)
        return rows

    seconds = ANSWER_SECONDS
    if space.name in OWN and use is Use.DOCUMENT:  # which computes, and is never away
        seconds *= max(1.0, len(texts) / TEXTS_IN_TIME)
    return answered_within(seconds, space.name, ask)


def side_space() -> Space | None:
    """The side space, None where no vector of IZZY_EMBEDDER has been stored."""
    row = EmbeddingSpace.objects.filter(role=Role.SIDE, name=encoder_name()).first()
    return Space(row.pk, row.name, row.dimension, row.noise, row.match) if row else None


def embedder_asked(name: str) -> Embedder:
    """The encoder of that name. Raises EmbedderDown, at once for a while after a failure."""
    if is_resting(name):
        raise EmbedderDown(f"{name} did not answer a moment ago.")
    return embedder_for(name)


def is_resting(name: str) -> bool:
    """Whether an encoder has failed a moment ago, or still owes an answer."""
    return is_late(name) or time.monotonic() - _down.get(name, -DOWN_SECONDS) < DOWN_SECONDS


def note_down(name: str) -> None:
    """Leave an encoder alone for a while from its failure on; asking it meanwhile does not prolong that."""
    if not is_resting(name):
        _down[name] = time.monotonic()


def note_up(name: str | None = None) -> None:
    """Forget that an encoder (or any) was down."""
    if name is None:
        _down.clear()
    else:
        _down.pop(name, None)


def forget_queries() -> None:
    """Drop the remembered vectors of questions and of texts that were compared."""
    with _lock:
        _vectors.clear()
