"""Writes of the search index. Call them inside the transaction that writes the document itself."""

import json
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import numpy as np
from django.conf import settings
from django.db import transaction

from apps.accounts.selectors import user_language
from apps.core.beforehand import once
from apps.core.slices import SLICE, rows_remove
from apps.core.text import chunk_text
from apps.search.documents import Document, Facet, Source
from apps.search.features import pack_features
from apps.search.fulltext import postings_remove
from apps.search.index import cache
from apps.search.language.analysis import document_terms, split_words, stems
from apps.search.models import IndexOwner, Passage, Tombstone
from apps.search.passages import Piece, owner_begin, passages_delete, passages_insert, vectors_held
from apps.search.spaces import active_space, inline_embedder

SHORT_CHARS = 500
"""A text of at most so many characters is one passage in any language."""
BATCH = 500

T = TypeVar("T")


@transaction.atomic(savepoint=False)
def documents_index(*, user_id: UUID, documents: Sequence[Document]) -> None:
    """Make the documents searchable for their owner; replaces all passages of each (source, source_id).

    Full text is searchable when the transaction commits. So are vectors with the static embedder; with a
    remote one they follow (`embedding.passages_embed_pending`). Never fails because an embedder is down.
    """
    if not documents:
        return
    owner = owner_begin(user_id)
    latest = {_name(document): document for document in documents}
    known = owner.space == settings.IZZY_EMBEDDER
    name, slot = (owner.space, owner.slot) if known else active_space()
    held: dict[str, bytes] = {}
    for keys in _batches(list({name[:2]: None for name in latest})):
        source_ids = [source_id for _, source_id in keys]
        if slot == owner.slot and inline_embedder(name) is None:
            held |= vectors_held(owner, source_ids)  # a change of labels or validity costs no vector
        passages_delete(owner, {source for source, _ in keys}, source_ids)
    pieces = [piece for document in latest.values() for piece in _pieces(document, owner.language)]
    for batch in _batches(pieces):
        vectors = once(_vectors, name, tuple(piece.text for piece in batch))
        if held:
            vectors = [held.get(piece.text) for piece in batch]
        passages_insert(owner, batch, vectors, slot=slot)


def documents_prepare(*, user_id: UUID, texts: Iterable[str]) -> None:
    """Work out what `documents_index` needs for new documents with these texts, in this order.

    Inside `beforehand` and before the transaction: of many texts it takes much longer than writing them.
    """
    language = user_language(user_id)
    analysed = [once(_analysed, text.strip(), language) for text in texts]
    chunks = [chunk for parts in analysed for chunk, _, _ in parts if chunk]
    for batch in _batches(chunks):
        once(_vectors, active_space()[0], tuple(batch))


def _name(document: Document) -> tuple[Source, UUID, datetime | None, Facet]:
    """What tells documents apart: facets of one, and its former texts by when they began to hold."""
    began = document.valid_from if document.past else None
    return document.source, document.source_id, began, document.facet


@transaction.atomic(savepoint=False)
def documents_remove(*, user_id: UUID, source: Source, source_ids: Collection[UUID]) -> int:
    """Take documents out of rows, vectors and full text at once; returns how many passages went."""
    if not source_ids:
        return 0
    owner = owner_begin(user_id)
    return sum(passages_delete(owner, [source], names) for names in _batches(list(source_ids)))


@transaction.atomic(savepoint=False)
def user_thin(*, user_id: UUID) -> bool:
    """Before an account goes: remove some of its passages; whether there may be more."""
    owner = IndexOwner.objects.filter(user_id=user_id).first()
    if owner is None:
        return False
    passages = Passage.objects.filter(user_id=user_id).order_by("change", "id")
    rows = list(passages.values_list("id", "terms")[:SLICE])
    postings_remove(owner.number, rows)
    Passage.objects.filter(id__in=[key for key, _ in rows]).delete()
    return len(rows) == SLICE or rows_remove(Tombstone.objects.filter(user_id=user_id))


@transaction.atomic(savepoint=False)
def user_forget(*, user_id: UUID) -> int:
    """Remove every trace of a user from the index, before the account's rows go."""
    owner = IndexOwner.objects.filter(user_id=user_id).first()
    if owner is None:
        return 0
    passages = Passage.objects.filter(user_id=user_id)
    postings_remove(owner.number, list(passages.values_list("id", "terms")))
    count, _ = passages.delete()
    Tombstone.objects.filter(user_id=user_id).delete()
    owner.delete()
    transaction.on_commit(lambda: cache.forget(user_id))
    return count


def _pieces(document: Document, language: str) -> Iterable[Piece]:
    for part, (chunk, code, terms) in enumerate(once(_analysed, document.text.strip(), language)):
        if chunk:
            features = pack_features(document, part=part, text=chunk, terms=terms, language=code)
            labels = [
                (label.kind, label.words, " ".join(stems(split_words(label.words), code)))
                for label in (document.labels if part == 0 else ())
            ]
            found_by = dict.fromkeys([*terms, *" ".join(stem for _, _, stem in labels).split()])
            packed = json.dumps(labels, ensure_ascii=False) if labels else ""
            yield Piece(document, part, chunk, " ".join(found_by), features, packed)


def _analysed(text: str, language: str) -> list[tuple[str, str, list[str]]]:
    """The text's chunks, each with the code of its language and its terms."""
    chunks = [text] if len(text) <= SHORT_CHARS else chunk_text(text)
    return [(chunk, *document_terms(chunk, language)) for chunk in chunks]


def _vectors(space: str, texts: tuple[str, ...]) -> list[bytes | None]:
    """The texts' vectors where they can be made at once, else None for each."""
    embedder = inline_embedder(space)
    if embedder is None:
        return [None] * len(texts)
    halves = np.asarray(embedder.embed_documents(texts), dtype="<f2")
    return [row.tobytes() for row in halves]


def _batches(items: list[T]) -> Iterable[list[T]]:
    return (items[start : start + BATCH] for start in range(0, len(items), BATCH))
