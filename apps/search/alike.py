"""Which of a user's documents say the same as another of theirs: all pairs at once, by their vectors."""

import threading
from collections import OrderedDict
from collections.abc import Collection
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.search.documents import Facet, Source
from apps.search.index.cache import index_open
from apps.search.models import Passage
from apps.search.relevance import Scale, likeness

Floats = NDArray[np.float32]
Pair = tuple[UUID, UUID, float]

BLOCK = 1024
"""Rows of one matrix product: 40 MB of similarities at 10,000 documents."""
MAX_PAIRS = 2000
MAX_COMPARED = 20_000
"""Of more documents the newest are compared."""
_HELD = 64

_known: OrderedDict[tuple[UUID, str, float], tuple[tuple[int, int, int], list[Pair]]] = OrderedDict()
_lock = threading.Lock()


def alike_pairs(user_id: UUID, *, source: Source, among: Collection[UUID], at_least: float) -> list[Pair]:
    """Pairs of documents of `among` with a calibrated similarity of at least `at_least`, the most alike first.

    Documents are compared by their first passage. At most 2,000 pairs. Remembered until the user's index, or the
    number of documents, changes.
    """
    with index_open(user_id) as opened:
        if opened is None or not among:
            return []
        head, rows = opened
        key, state = (user_id, str(source), at_least), (head.change, head.space_id, len(among))
        with _lock:
            known = _known.get(key)
        if known is not None and known[0] == state:
            return known[1]
        wanted = set(among)
        first = Passage.objects.filter(user_id=user_id, source=source, part=0, past=False, facet=Facet.TEXT)
        names = {passage: key for passage, key in first.values_list("id", "source_id") if key in wanted}
        alive = rows.alive[: rows.size] & rows.embedded[: rows.size]
        places = np.flatnonzero(alive & np.isin(rows.ids[: rows.size], list(names)))[-MAX_COMPARED:]
        vectors = rows.vectors[places]
        documents = [names[passage] for passage in rows.ids[places].tolist()]
    pairs = _pairs(vectors, documents, head, at_least)
    with _lock:
        _known[key] = (state, pairs)
        _known.move_to_end(key)
        while len(_known) > _HELD:
            _known.popitem(last=False)
    return pairs


def _pairs(vectors: Floats, documents: list[UUID], scale: Scale, at_least: float) -> list[Pair]:
    found: list[Pair] = []
    for start in range(0, len(documents), BLOCK):
        block = vectors[start : start + BLOCK]
        similar = likeness(block @ vectors[start:].T, scale)
        ones, twos = np.nonzero(similar >= at_least)
        later = twos > ones
        for one, two in zip(ones[later].tolist(), twos[later].tolist(), strict=True):
            found.append((documents[start + one], documents[start + two], float(similar[one, two])))
        if len(found) > 10 * MAX_PAIRS:
            found = _most_alike(found)
    return _most_alike(found)


def _most_alike(pairs: list[Pair]) -> list[Pair]:
    return sorted(pairs, key=lambda pair: -pair[2])[:MAX_PAIRS]
