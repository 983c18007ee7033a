"""The active vector space and its embedder; remembers for a while that an embedder was down."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import timedelta
from hashlib import blake2b
from itertools import groupby
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from apps.core.errors import Conflict
from apps.search.backends import Head, backend
from apps.search.embedders.base import Embedder, EmbedderDown, EmbedderMissing, QueryWeights, Vector
from apps.search.embedders.engines import embedder_for
from apps.search.models import EmbeddingSpace, IndexOwner, Passage, Tombstone

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


logger = logging.getLogger(__name__)

BATCH = 64
TOMBSTONE_DAYS = 2
Slot = EmbeddingSpace.Slot
State = EmbeddingSpace.State


def passages_embed_pending(*, limit: int = 2048) -> int:
    """Give waiting passages their vectors in the active space; returns how many got one. Raises EmbedderDown."""
    space = EmbeddingSpace.objects.filter(state=State.ACTIVE).first()
    if space is None:
        return 0
    done = 0
    while done < limit:
        # The oldest, so that nothing has to be sorted in the database, however many wait; each user's together.
        oldest = Passage.objects.filter(pending=True).order_by("id").values_list("id", "user_id", "text")
        waiting = sorted(oldest[:BATCH], key=lambda row: (row[1], row[0]))
        if not waiting:
            break
        vectors = _embed(space, [text for _, _, text in waiting])
        with transaction.atomic():
            _store(space, waiting, vectors, announce=True)
        done += len(waiting)
    return done


def sweep_pending() -> None:
    """The worker's catching up; an embedder that is down is tried again later."""
    if is_resting(settings.IZZY_EMBEDDER) or not Passage.objects.filter(pending=True).exists():
        return
    try:
        passages_embed_pending()
    except EmbedderDown as error:
        logger.warning("passages wait for their vectors: %s", error.message)


def sweep_tombstones() -> None:
    """Forget old deletions; an index that has not looked for so long loads anew."""
    limit = timezone.now() - timedelta(days=TOMBSTONE_DAYS)
    with transaction.atomic():
        old = Tombstone.objects.filter(created_at__lt=limit)
        for row in old.order_by().values("user_id").annotate(newest=Max("change")):
            IndexOwner.objects.filter(user_id=row["user_id"]).update(tombstones_from=row["newest"])
        old.delete()


def space_build(
    *, name: str, progress: Callable[[int, int], None] = lambda done, total: None
) -> EmbeddingSpace:
    """Make every passage's vector in the space of another embedder, then switch to it at once.

    Search goes on in the old space meanwhile, new passages included. Interrupted, the next call for the same embedder
    goes on where it stopped. `progress(done, total)` is called after each batch. Raises EmbedderDown (also for
    an unknown embedder), Conflict where another switch came first.
    """
    embedder = embedder_for(name)
    total = Passage.objects.count()
    if not total:  # where there is something, the first batch tells that it does not answer
        embedder.embed_query("anybody")
    space = _space_to_build(name)
    done = Passage.objects.filter(id__lte=space.built_to).count()
    progress(done, total)
    while True:
        batch = list(
            Passage.objects.filter(id__gt=space.built_to)
            .order_by("id")
            .values_list("id", "user_id", "text")[:BATCH]
        )
        if not batch:
            if _switch(space):
                return space
            continue
        vectors = _embed(space, [text for _, _, text in batch])
        with transaction.atomic():
            _store(space, batch, vectors, announce=False)
            space.built_to = batch[-1][0]
            space.save(update_fields=["built_to"])
        done += len(batch)
        progress(done, max(total, done))


def _space_to_build(name: str) -> EmbeddingSpace:
    """The space that was being built for the embedder, else a new one in the slot that the active one leaves free."""
    building = EmbeddingSpace.objects.filter(state=State.BUILDING).first()
    if building is not None and building.name == name:
        return building
    active = EmbeddingSpace.objects.filter(state=State.ACTIVE).first()
    slot = Slot.B if active is not None and active.slot == Slot.A else Slot.A
    with transaction.atomic():
        EmbeddingSpace.objects.filter(state=State.BUILDING).delete()
        return space_make(name, slot=slot, state=State.BUILDING)


@transaction.atomic
def _switch(space: EmbeddingSpace) -> bool:
    """Make a built space the active one; False where passages have been added since."""
    if Passage.objects.filter(id__gt=space.built_to).exists():
        return False
    if not EmbeddingSpace.objects.filter(pk=space.pk, state=State.BUILDING).exists():
        raise Conflict("Another reindex has replaced this one.")
    EmbeddingSpace.objects.filter(state=State.ACTIVE).update(state=State.RETIRED)
    space.state = State.ACTIVE
    space.save(update_fields=["state"])
    Passage.objects.filter(pending=True).update(pending=False)
    EmbeddingSpace.objects.filter(state=State.RETIRED).delete()
    return True


def vectors_clear(*, slot: str) -> int:
    """Free the space of a slot that no space uses any more, in small transactions; returns how many rows it cleared."""
    if EmbeddingSpace.objects.filter(slot=slot).exists():
        return 0
    column = f"vector_{slot}"
    cleared = last = 0
    filled = Passage.objects.exclude(**{column: None}).order_by("id").values_list("id", flat=True)
    while ids := list(
        filled.filter(id__gt=last)[:1000]
    ):  # from where it was, not from the beginning each time
        cleared += Passage.objects.filter(id__in=ids).update(**{column: None})
        last = ids[-1]
    return cleared


def _embed(space: EmbeddingSpace, texts: list[str]) -> np.ndarray:
    embedder = embedder_for(space.name)
    try:
        vectors = embedder.embed_documents(texts)
    except EmbedderDown:
        note_down(space.name)
        raise
    note_up(space.name)
    dimension = vectors.shape[1]
    if space.dimension and space.dimension != dimension:
        raise EmbedderDown(
            f"{space.name} now gives {dimension} numbers where it gave {space.dimension}: run manage.py reindex."
        )
    if not space.dimension:  # what is known of a space is noted only once its embedder has answered
        space.dimension = dimension
        space.noise, space.match = embedder.noise, embedder.match
        space.query_prefix, space.document_prefix = embedder.query_prefix, embedder.document_prefix
        space.save(update_fields=["dimension", "noise", "match", "query_prefix", "document_prefix"])
    return vectors


def _store(
    space: EmbeddingSpace, rows: Iterable[tuple[int, UUID, str]], vectors: np.ndarray, *, announce: bool
) -> None:
    """Write vectors; with `announce` every process takes them in at its next search."""
    halves = np.asarray(vectors, dtype="<f2")
    for user_id, group in groupby(enumerate(rows), key=lambda item: item[1][1]):
        more: dict[str, object] = {}
        if announce:
            owner = IndexOwner.objects.filter(user_id=user_id)
            owner.update(change=F("change") + 1)
            more = {"change": owner.values_list("change", flat=True).get(), "pending": False}
        for place, (passage_id, _, _) in group:
            vector = {f"vector_{space.slot}": halves[place].tobytes()}
            Passage.objects.filter(id=passage_id).update(**vector, **more)
