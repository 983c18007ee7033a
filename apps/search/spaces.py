"""The active vector space and its embedder; remembers for a while that an embedder was down."""

import threading
import time
from collections import OrderedDict
from hashlib import blake2b
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import transaction

from apps.search.backends import Head, backend
from apps.search.embedders import Embedder, EmbedderDown, EmbedderMissing, QueryWeights, embedder_for
from apps.search.embedders.base import Vector
from apps.search.models import EmbeddingSpace, Passage

DOWN_SECONDS = 15.0
"""After a failure an embedder is left alone for this time, so that searches do not wait for it one by one."""
MAX_QUERIES = 256

_down: dict[str, float] = {}
_queries: OrderedDict[tuple[str, bytes], Vector] = OrderedDict()
"""By embedder and digest of the question: the words of a question do not stay in memory."""
_lock = threading.Lock()


def space_ensure() -> EmbeddingSpace:
    """The active space; made for IZZY_EMBEDDER where there is none, or where nothing is indexed yet."""
    space = EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.ACTIVE).first()
    if space is not None and (space.name == settings.IZZY_EMBEDDER or Passage.objects.exists()):
        return space
    with transaction.atomic():
        EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.ACTIVE).delete()
        return space_make(
            settings.IZZY_EMBEDDER, slot=EmbeddingSpace.Slot.A, state=EmbeddingSpace.State.ACTIVE
        )


def space_make(name: str, *, slot: str, state: str) -> EmbeddingSpace:
    """A row for an embedder's space; where the embedder's package is missing, an empty one that waits."""
    try:
        embedder: Embedder | None = embedder_for(name)
    except EmbedderMissing:
        embedder = None
    return EmbeddingSpace.objects.create(
        name=name,
        slot=slot,
        state=state,
        dimension=embedder.dimension if embedder and embedder.inline else 0,
        query_prefix=embedder.query_prefix if embedder else "",
        document_prefix=embedder.document_prefix if embedder else "",
        noise=embedder.noise if embedder else 0.0,
        match=embedder.match if embedder else 1.0,
    )


def inline_embedder(name: str) -> Embedder | None:
    """The embedder that may run inside a saving transaction, None where vectors have to follow later."""
    try:
        embedder = embedder_for(name)
    except EmbedderMissing:
        return None
    return embedder if embedder.inline else None


def query_vector(head: Head, text: str, weights: QueryWeights | None = None) -> Vector | None:
    """The vector of a question in the active space; None where the space is still empty. Raises EmbedderDown."""
    embedder = embedder_for(head.space_name)
    if embedder.inline:
        return embedder.embed_query(text, weights)
    if not head.dimension:
        return None
    vector = _remembered(embedder, text)
    return vector if len(vector) == head.dimension else None


def query_prepare(user_id: UUID, text: str) -> None:
    """Have a slow embedder's vector of a question ready, for whoever needs it while the user's index is locked."""
    if inline_embedder(settings.IZZY_EMBEDDER) is not None:
        return
    head = backend.head(user_id)
    if head is None:
        return
    try:
        query_vector(head, text)
    except EmbedderDown:
        return  # search goes by words, and says so where it matters


def _remembered(embedder: Embedder, text: str) -> Vector:
    key = (embedder.name, blake2b(text.encode(), digest_size=16).digest())
    with _lock:
        known = _queries.get(key)
        if known is not None:
            _queries.move_to_end(key)
            return known
    if is_resting(embedder.name):
        raise EmbedderDown(f"{embedder.name} did not answer a moment ago.")
    try:
        vector = embedder.embed_query(text)
    except EmbedderDown:
        note_down(embedder.name)
        raise
    with _lock:
        _queries[key] = np.asarray(vector)
        while len(_queries) > MAX_QUERIES:
            _queries.popitem(last=False)
    return vector


def is_resting(name: str) -> bool:
    return time.monotonic() - _down.get(name, -DOWN_SECONDS) < DOWN_SECONDS


def note_down(name: str) -> None:
    _down[name] = time.monotonic()


def note_up(name: str | None = None) -> None:
    """Forget that an embedder (or any) was down."""
    if name is None:
        _down.clear()
    else:
        _down.pop(name, None)


def forget_queries() -> None:
    """Drop the remembered vectors of questions."""
    with _lock:
        _queries.clear()
