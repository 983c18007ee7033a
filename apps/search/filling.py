"""Gives passages the vectors that they wait for, in short transactions, and forgets old deletions: the worker's upkeep."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import compress, groupby
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import F, Max, QuerySet
from django.utils import timezone

from apps.core.db.writing import users_of, writing_for
from apps.core.errors import Conflict
from apps.core.jobs.worker import Background
from apps.search.embedders.base import Embedder, EmbedderDown, EmbedderRefused, Matrix
from apps.search.embedders.deadline import answered_within
from apps.search.embedders.engines import encoder_knows, static_embedder, taught_mark
from apps.search.models import EmbeddingSpace, IndexOwner, Passage, Tombstone
from apps.search.proactive.encoder_lesson import has_learnt, learn
from apps.search.spaces import Role, embedder_asked, encoder_name, is_resting, note_down, note_up
from apps.search.text.analysis import detect_language

logger = logging.getLogger(__name__)

BATCH = 64
BATCH_CHARS = 32_000
"""Encoders answer one request after the other: a question should not have to wait long for a batch."""
BATCH_SECONDS = 150.0
CLEARED_AT_ONCE = 500
TOMBSTONE_DAYS = 2
PROBE = "Is anybody there?"
REPLACED = "Another encoder has been named meanwhile."
Waiting = tuple[int, UUID, str]
"""Id, owner and text of a passage."""


def side_waiting(name: str) -> int:
    """How many passages have no vector of the encoder yet."""
    if EmbeddingSpace.objects.filter(role=Role.SIDE, name=name).exists():
        return Passage.objects.filter(side_vector=None).count()
    return Passage.objects.count()


def base_waiting() -> QuerySet[Passage]:
    """Passages that have no bundled vector yet."""
    return Passage.objects.filter(vector=None)


def encoder_waiting() -> QuerySet[Passage]:
    """Passages that have no vector of the encoder yet; none where none is named."""
    return Passage.objects.filter(side_vector=None) if encoder_name() else Passage.objects.none()


def sweep_vectors() -> None:
    """The worker's catching up, in threads of its own, where something waits: what takes long would keep other sweeps waiting."""
    with _asked_again_later():
        if base_waiting().exists() or _vectors_due():
            filler.start()
        if _lesson_due():
            teacher.start()


def vectors_fill() -> None:
    """Give what waits its vectors: all of the bundled ones, and some of an encoder's."""
    base_fill(base_waiting())
    with _asked_again_later():
        if _vectors_due():
            side_fill(encoder_name(), limit=2048, lesson=False)


def encoder_learn() -> None:
    """Have the encoder learn what it has not learnt."""
    with _asked_again_later():
        if _lesson_due():
            embedder = embedder_asked(encoder_name())
            _learn(embedder, _space_of(embedder, anew=False))


def _vectors_due() -> bool:
    name = encoder_name()
    if not name or is_resting(name):  # one that is down is tried again later
        return False
    space = EmbeddingSpace.objects.filter(role=Role.SIDE, name=name).first()
    return space is None or _is_older(space) or side_waiting(name) > 0


def _is_older(space: EmbeddingSpace) -> bool:
    """Whether its vectors are of an earlier version of an encoder that comes taught."""
    return bool(taught_mark(space.name)) and not has_learnt(space)


def _lesson_due() -> bool:
    name = encoder_name()
    if not name or taught_mark(name) or is_resting(name):
        return False
    space = EmbeddingSpace.objects.filter(role=Role.SIDE, name=name).first()
    return space is not None and not has_learnt(space)


@contextmanager
def _asked_again_later() -> Iterator[None]:
    """An encoder that fails meanwhile leaves a line in the log."""
    try:
        yield
    except (EmbedderDown, Conflict) as error:
        logger.warning("the encoder is asked again later: %s", error.message)


filler = Background("vectors", vectors_fill)
teacher = Background("encoder's lesson", encoder_learn)


def sweep_tombstones() -> None:
    """Forget old deletions; an index that has not looked for so long loads anew."""
    limit = timezone.now() - timedelta(days=TOMBSTONE_DAYS)
    for user_id, old in users_of(Tombstone.objects.filter(created_at__lt=limit)):
        with transaction.atomic():
            newest = old.aggregate(newest=Max("change"))["newest"]
            IndexOwner.objects.filter(user_id=user_id).update(tombstones_from=newest)
            old.delete()


def base_fill(among: QuerySet[Passage]) -> int:
    """Write those bundled vectors of passages that are missing or are not what they should be; returns how many."""
    embedder = static_embedder()
    done = last = 0
    while embedder is not None:
        rows = among.filter(id__gt=last).order_by("id").values_list("id", "user_id", "text", "vector")
        batch = list(rows[:BATCH])
        if not batch:
            break
        last = batch[-1][0]
        halves = np.asarray(embedder.embed_documents([row[2] for row in batch]), dtype="<f2")
        packed = [half.tobytes() for half in halves]
        wrong = [
            ((key, owner, text), vector)
            for (key, owner, text, held), vector in zip(batch, packed, strict=True)
            if held is None or bytes(held) != vector
        ]
        for user_id, group in groupby(sorted(wrong, key=_owner_and_id), key=lambda item: item[0][1]):
            with writing_for(user_id), transaction.atomic():
                _store("vector", user_id, group)
        done += len(wrong)
    return done


def side_fill(
    name: str,
    *,
    limit: int | None = None,
    anew: bool = False,
    lesson: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Give passages their vectors of an encoder, `limit` at most, the oldest first; returns how many got one. At the end it learns
    its `lesson`.

    What another encoder made is removed before, and with `anew` also what this one made in another dimension. Search
    goes on meanwhile; killed, the next call goes on where it stopped. `progress(done, total)` is called after each batch.
    Raises EmbedderDown (also for an unknown encoder), Conflict where another encoder was named meanwhile.
    """
    embedder = embedder_asked(name)
    space = _space_of(embedder, anew=anew)
    waiting, done = Passage.objects.filter(side_vector=None), 0
    total = Passage.objects.count()
    before = total - waiting.count()
    progress(before, total)
    while limit is None or done < limit:
        # The oldest, so that nothing has to be sorted in the database, however many wait; each user's together.
        oldest = waiting.order_by("id").values_list("id", "user_id", "text")[:BATCH]
        batch = sorted(_bounded(oldest), key=lambda row: (row[1], row[0]))
        if not batch:
            _check_still(space)
            if lesson:
                _learn(embedder, space)
            break
        vectors = _embed(embedder, [text for _, _, text in batch], space.dimension)
        halves = [half.tobytes() for half in np.asarray(vectors, dtype="<f2")]
        made = zip(batch, halves, strict=True)
        for user_id, group in groupby(made, key=lambda item: item[0][1]):
            with writing_for(user_id), transaction.atomic():
                _check_still(space)
                _store("side_vector", user_id, group)
        done += len(batch)
        progress(before + done, max(total, before + done))
    return done


def _bounded(rows: Iterable[Waiting]) -> Iterator[Waiting]:
    """The first rows, of BATCH_CHARS together, but one at least."""
    chars = 0
    for row in rows:
        chars += len(row[2])
        if chars > max(BATCH_CHARS, len(row[2])):
            return
        yield row


def _space_of(embedder: Embedder, *, anew: bool) -> EmbeddingSpace:
    """The row of an encoder's space, made once it answers and the vectors of another one are gone."""
    space = EmbeddingSpace.objects.filter(role=Role.SIDE, name=embedder.name).first()
    if space is not None and not anew and not _is_older(space):
        return space
    dimension = _answer(embedder, lambda: embedder.embed_queries([PROBE])).shape[1]
    if space is not None and space.dimension == dimension and not _is_older(space):
        return space
    side_empty()
    with transaction.atomic():
        space, _ = EmbeddingSpace.objects.get_or_create(
            role=Role.SIDE,
            defaults={
                "name": embedder.name,
                "dimension": dimension,
                "noise": embedder.noise,
                "match": embedder.match,
                "query_prefix": embedder.query_prefix,
                "document_prefix": embedder.document_prefix,
                "concern": taught_mark(embedder.name) or None,
            },
        )
    if (space.name, space.dimension) != (embedder.name, dimension):
        raise Conflict(REPLACED)
    return space


def _check_still(space: EmbeddingSpace) -> None:
    """Raises Conflict where the space has been removed, for another encoder's."""
    if not EmbeddingSpace.objects.filter(pk=space.pk).exists():
        raise Conflict(REPLACED)


def _learn(embedder: Embedder, space: EmbeddingSpace) -> None:
    """Have the space learn by example what concerns the user and which notes matter to what; once. Until then recall
    does without it."""
    if taught_mark(space.name) or has_learnt(space):
        return

    def embed(by: Callable[[Sequence[str]], Matrix], texts: Sequence[str]) -> Matrix:
        batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        vectors = [_answer(embedder, partial(by, batch)) for batch in batches]
        for rows in vectors:
            if rows.shape[1] != space.dimension:
                raise EmbedderDown(f"{space.name} gives {rows.shape[1]} numbers, not {space.dimension}.")
        return np.concatenate(vectors)

    lesson = learn(
        embedder.name,
        queries=partial(embed, embedder.embed_queries),
        documents=partial(embed, embedder.embed_documents),
    )
    EmbeddingSpace.objects.filter(pk=space.pk).update(concern=lesson.packed())


def side_empty() -> None:
    """Remove the side space and its vectors, in short transactions; search goes by the base space from the first on."""
    EmbeddingSpace.objects.filter(role=Role.SIDE).delete()
    last = 0
    filled = Passage.objects.exclude(side_vector=None).order_by("id")
    # From where it was, not from the beginning each time.
    while ids := list(filled.filter(id__gt=last).values_list("id", flat=True)[:CLEARED_AT_ONCE]):
        for _, own in users_of(Passage.objects.filter(id__in=ids)):
            with transaction.atomic():
                if EmbeddingSpace.objects.filter(role=Role.SIDE).exists():
                    return  # another process has emptied it, and fills it anew
                own.update(side_vector=None)
        last = ids[-1]


def _embed(embedder: Embedder, texts: list[str], dimension: int) -> Matrix:
    """The texts' vectors; zeros for one in a language that the encoder does not know, or that it refuses although it takes
    others. Raises EmbedderDown."""
    known = [encoder_knows(embedder.name, [detect_language(text)]) for text in texts]
    if not all(known):
        vectors = np.zeros((len(texts), dimension), dtype=np.float32)
        if any(known):
            vectors[known] = _embed(embedder, list(compress(texts, known)), dimension)
        return vectors
    try:
        vectors = _answer(embedder, lambda: embedder.embed_documents(texts))
    except EmbedderRefused:
        _answer(embedder, lambda: embedder.embed_documents([PROBE]))
        if len(texts) == 1:
            return np.zeros((1, dimension), dtype=np.float32)
        half = len(texts) // 2
        parts = [_embed(embedder, part, dimension) for part in (texts[:half], texts[half:])]
        return np.concatenate(parts)
    if vectors.shape[1] != dimension:
        note_down(embedder.name)
        raise EmbedderDown(
            f"{embedder.name} now gives {vectors.shape[1]} numbers where it gave {dimension}: run manage.py reindex."
        )
    return vectors


def _answer(embedder: Embedder, ask: Callable[[], Matrix]) -> Matrix:
    """The answer of an encoder; notes whether it does."""
    try:
        vectors = answered_within(BATCH_SECONDS, embedder.name, ask)
    except EmbedderDown:
        note_down(embedder.name)
        raise
    note_up(embedder.name)
    return vectors


def _owner_and_id(item: tuple[Waiting, bytes]) -> tuple[UUID, int]:
    return item[0][1], item[0][0]


def _store(column: str, user_id: UUID, vectors: Iterable[tuple[Waiting, bytes]]) -> None:
    """Write a user's vectors in the caller's transaction; every process takes them in at its next search."""
    owner = IndexOwner.objects.filter(user_id=user_id)
    if not owner.update(change=F("change") + 1):
        return  # the account has gone meanwhile
    change = owner.values_list("change", flat=True).get()
    for (passage_id, _, _), vector in vectors:
        Passage.objects.filter(id=passage_id).update(**{column: vector, "change": change})
