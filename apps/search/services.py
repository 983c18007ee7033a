"""Writes of the search index. Call them inside the transaction that writes the document itself."""

import json
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import TypeVar
from uuid import UUID

import numpy as np
from django.db import transaction

from apps.accounts.selectors import user_language
from apps.core.db.writing import SLICE, keep, once, rows_remove
from apps.core.jobs.apart import apart
from apps.core.purging.trace import PurgePart, Trace
from apps.search.backends import Head, Stem, backend
from apps.search.documents import Document, Facet, Source
from apps.search.embedders.engines import static_embedder
from apps.search.features import pack_features
from apps.search.index import cache
from apps.search.models import IndexOwner, Passage, Tombstone
from apps.search.spaces import base_ensure, forget_queries
from apps.search.text.analysis import analysed_all, analysed_text, document_terms, split_words, stems

LONG_CHARS = 100_000
"""More is read in a process of its own."""
BATCH = 500
MAX_NAME = 200

T = TypeVar("T")


@transaction.atomic(savepoint=False)
def documents_index(*, user_id: UUID, documents: Sequence[Document], are_new: bool = False) -> None:
    """Make the documents searchable for their owner; replaces all passages of each (source, source_id).

    With `are_new` nothing is looked for that they might replace. Full text and bundled vectors are searchable when the
    transaction commits; an encoder's vectors follow (`filling.side_fill`). Never fails because one is down.
    """
    if not documents:
        return
    head = backend.head(user_id)
    if head is None:
        base_ensure()  # and the user as an owner, from the first write on
        IndexOwner.objects.get_or_create(user_id=user_id)
        head = backend.head(user_id)
        assert head is not None  # noqa: S101 - it has just been made
    # Facets of a document differ, and its former texts by when they began to hold.
    latest = {
        (each.source, each.source_id, each.valid_from if each.past else None, each.facet): each
        for each in documents
    }
    held: dict[str, bytes] = {}
    for keys in _batches([] if are_new else list({name[:2]: None for name in latest})):
        source_ids = [source_id for _, source_id in keys]
        if head.side is not None:
            held |= _side_vectors(user_id, source_ids)  # a change of labels or validity costs none
        _delete(user_id, {source for source, _ in keys}, source_ids)
    # Apart, as `documents_prepare` has the vectors of the texts.
    for facet in Facet:
        of_facet = (document for document in latest.values() if document.facet is facet)
        passages = [passage for document in of_facet for passage in _passages(head, document)]
        for batch in _batches(passages):
            vectors = once(_vectors, tuple(passage.text for passage in batch))
            for passage, vector in zip(batch, vectors, strict=True):
                passage.vector, passage.side_vector = vector, held.get(passage.text)
            backend.rows_insert(user_id, batch)


def documents_prepare(*, user_id: UUID, texts: Iterable[str], occasions: Sequence[str] = ()) -> None:
    """Work out what `documents_index` needs for new documents with these texts, and these lines of occasions, in this order.

    Inside `precompute` and before the transaction: of many texts it takes much longer than writing them.
    """
    language, stripped = user_language(user_id), [_storable(text) for text in texts]
    if sum(map(len, stripped)) > LONG_CHARS:
        analysed = apart(analysed_all, stripped, language)
        for text, parts in zip(stripped, analysed, strict=True):
            keep(parts, analysed_text, text, language)
    else:
        analysed = [once(analysed_text, text, language) for text in stripped]
    chunks = [chunk for parts in analysed for chunk, _, _ in parts if chunk]
    for batch in chain(_batches(chunks), _batches(list(occasions))):
        once(_vectors, tuple(batch))


@transaction.atomic(savepoint=False)
def documents_remove(*, user_id: UUID, source: Source, source_ids: Collection[UUID]) -> int:
    """Take documents out of rows, vectors and full text at once; returns how many passages went."""
    return sum(_delete(user_id, [source], names) for names in _batches(list(source_ids)))


@transaction.atomic(savepoint=False)
def user_thin(*, user_id: UUID) -> bool:
    """Before an account goes: remove some of its passages; whether there may be more."""
    passages = Passage.objects.filter(user_id=user_id).order_by("change", "id")
    ids = list(passages.values_list("id", flat=True)[:SLICE])
    if ids:
        backend.rows_delete(user_id, ids)
    return len(ids) == SLICE or rows_remove(Tombstone.objects.filter(user_id=user_id))


@transaction.atomic(savepoint=False)
def user_forget(*, user_id: UUID) -> int:
    """Remove every trace of a user from the index, before the account's rows go."""
    count = Passage.objects.filter(user_id=user_id).count()
    while user_thin(user_id=user_id):
        pass
    IndexOwner.objects.filter(user_id=user_id).delete()
    transaction.on_commit(lambda: cache.forget(user_id))
    return count


def _delete(user_id: UUID, sources: Collection[Source], source_ids: Collection[UUID]) -> int:
    """Remove the passages of some documents (a few hundred at most); returns how many went."""
    rows = Passage.objects.filter(source_id__in=source_ids, source__in=sources).values_list(
        "id", "user_id"
    )
    # Whose they are is looked at here: SQLite, asked for it too, would go through all of the user's rows.
    ids = [key for key, owner in rows if owner == user_id]
    if ids:
        backend.rows_delete(user_id, ids)
    return len(ids)


def _side_vectors(user_id: UUID, source_ids: Collection[UUID]) -> dict[str, bytes]:
    """The side vectors of these documents' passages, by their text."""
    rows = Passage.objects.filter(source_id__in=source_ids).exclude(side_vector=None)
    held = rows.values_list("user_id", "text", "side_vector")
    return {text: bytes(vector or b"") for owner, text, vector in held if owner == user_id}


def _passages(head: Head, document: Document) -> Iterable[Passage]:
    """The document's passages, without their vectors. Occasions are not found by their words: they have no terms."""
    chunks: Iterable[tuple[str, str, Sequence[str]]]
    if document.facet is Facet.OCCASIONS:
        chunks = ((_storable(line), "", ()) for line in document.text.splitlines())
    else:
        chunks = once(analysed_text, _storable(document.text), head.language)
    for part, (chunk, code, terms) in enumerate(chunks):
        if not chunk:
            continue
        labels = [
            (label.kind, label.words, " ".join(stems(split_words(label.words), code)))
            for label in (document.labels if part == 0 else ())
        ]
        found_by = dict.fromkeys([*terms, *" ".join(stem for _, _, stem in labels).split()])
        yield Passage(
            user_id=head.user_id,
            features=pack_features(document, part=part, text=chunk, terms=terms, language=code),
            source=document.source,
            source_id=document.source_id,
            part=part,
            facet=document.facet,
            conversation_id=document.conversation_id,
            session=document.session[:MAX_NAME],
            position=document.position,
            speaker=document.speaker[:MAX_NAME],
            external_id=document.external_id[:MAX_NAME],
            happened_at=document.happened_at,
            valid_from=document.valid_from,
            valid_to=document.valid_to,
            past=document.past,
            text=chunk,
            terms=" ".join(found_by),
            labels=json.dumps(labels, ensure_ascii=False) if labels else "",
        )


def _storable(text: str) -> str:
    """The text without white space around it, and without NUL, which not every database takes."""
    return text.replace("\0", " ").strip()


def _vectors(texts: tuple[str, ...]) -> list[bytes | None]:
    """The texts' bundled vectors, None for each where those are missing."""
    embedder = static_embedder()
    if embedder is None:
        return [None] * len(texts)
    halves = np.asarray(embedder.embed_documents(texts), dtype="<f2")
    return [row.tobytes() for row in halves]


def _batches(items: list[T]) -> Iterable[list[T]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))


def index_left(trace: Trace) -> dict[str, int]:
    """By place, what the index still has of what was purged: passages, and with them vectors; passages that full text finds by
    a word that only the purged rows have, and that are theirs or are gone. This process' index is read anew when it is
    next needed; the others do so at the user's next search."""
    user_id, sources = trace.user_id, trace.ids | trace.messages
    passages, found = Passage.objects.filter(user_id=user_id), set[int]()
    if owner := IndexOwner.objects.filter(user_id=user_id).first():
        words = [each for each in trace.exclusive if isinstance(each, str)]
        terms = sorted({term for word in words for term in document_terms(word)[1]})
        postings = backend.postings(owner.number, list(map(Stem, terms)))
        found.update(key for ids in postings for key in ids.tolist())
    others = passages.exclude(source_id__in=sources).values_list("pk", flat=True)
    forget_queries()
    cache.forget(user_id)
    return {
        "search.vectors": passages.filter(source_id__in=sources).count(),
        "search.full_text": len(found.difference(others)) if found else 0,
    }


PURGING = PurgePart(
    counts=index_left,
    before_disk=backend.segments_merge,  # removed terms are really gone then
)
