"""Writes of the search index. Call them inside the transaction that writes the document itself."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import numpy as np
from django.db import connection, transaction
from django.utils import timezone

from apps.accounts.selectors import user_language
from apps.core.text import chunk_text
from apps.search.documents import Document, Source
from apps.search.features import pack_features
from apps.search.fulltext import postings_add, postings_remove
from apps.search.index import cache
from apps.search.language.analysis import document_terms
from apps.search.models import EmbeddingSpace, IndexOwner, Passage, Tombstone
from apps.search.spaces import inline_embedder, space_ensure

SHORT_CHARS = 500
"""A text of at most so many characters is one passage in any language."""
BATCH = 500


@dataclass(frozen=True, slots=True)
class Piece:
    """One passage to be written."""

    document: Document
    part: int
    text: str
    terms: str
    features: bytes


@transaction.atomic
def documents_index(*, user_id: UUID, documents: Sequence[Document]) -> None:
    """Make the documents searchable for their owner; replaces all passages of each (source, source_id).

    Full text is searchable when the transaction commits. So are vectors with the static embedder; with a
    remote one they follow (`passages_embed_pending`). Never fails because an embedder is down.
    """
    if not documents:
        return
    space = space_ensure()
    language = user_language(user_id)
    owner = _next_change(user_id)
    latest = {(document.source, document.source_id): document for document in documents}
    _remove(owner, [document.source_id for document in latest.values()], {d.source for d in latest.values()})
    pieces = [piece for document in latest.values() for piece in _pieces(document, language)]
    for start in range(0, len(pieces), BATCH):
        _write(owner, space, pieces[start : start + BATCH])


@transaction.atomic
def documents_remove(*, user_id: UUID, source: Source, source_ids: Collection[UUID]) -> int:
    """Take documents out of rows, vectors and full text at once; returns how many passages went."""
    if not source_ids:
        return 0
    return _remove(_next_change(user_id), list(source_ids), {source})


@transaction.atomic
def user_forget(*, user_id: UUID) -> int:
    """Remove every trace of a user from the index, before the account's rows go."""
    owner = IndexOwner.objects.filter(user_id=user_id).first()
    if owner is None:
        return 0
    passages = Passage.objects.filter(user_id=user_id)
    postings_remove(owner.number, passages.values_list("id", "terms").iterator(chunk_size=BATCH))
    count, _ = passages.delete()
    Tombstone.objects.filter(user_id=user_id).delete()
    owner.delete()
    transaction.on_commit(lambda: cache.forget(user_id))
    return count


def _next_change(user_id: UUID) -> IndexOwner:
    """The owner's row with its change number raised; made at the first write."""
    owner, created = IndexOwner.objects.get_or_create(user_id=user_id, defaults={"change": 1})
    if not created:
        owner.change += 1
        owner.save(update_fields=["change"])
    return owner


def _pieces(document: Document, language: str) -> Iterable[Piece]:
    text = document.text.strip()
    chunks = [text] if len(text) <= SHORT_CHARS else chunk_text(text)
    for part, chunk in enumerate(chunks):
        if chunk:
            code, terms = document_terms(chunk, language)
            features = pack_features(document, part=part, text=chunk, terms=terms, language=code)
            yield Piece(document, part, chunk, " ".join(terms), features)


def _write(owner: IndexOwner, space: EmbeddingSpace, pieces: Sequence[Piece]) -> None:
    vectors = _vectors(space, [piece.text for piece in pieces])
    column = "vector_a" if space.slot == EmbeddingSpace.Slot.A else "vector_b"
    first = _next_passage_id()
    rows = [
        _row(first + place, owner, piece, vector)
        for place, (piece, vector) in enumerate(zip(pieces, vectors, strict=True))
    ]
    sql = f"INSERT INTO search_passage({_COLUMNS}, {column}) VALUES ({', '.join('?' * 19)})"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.connection.executemany(sql, rows)
    postings_add(owner.number, ((first + place, piece.terms) for place, piece in enumerate(pieces)))


_COLUMNS = (
    "id, user_id, change, features, pending, source, source_id, part, conversation_id, session, position, speaker, "
    "external_id, happened_at, valid_from, valid_to, text, terms"
)


def _row(passage_id: int, owner: IndexOwner, piece: Piece, vector: bytes | None) -> tuple[object, ...]:
    document = piece.document
    return (
        passage_id,
        owner.user_id.hex,
        owner.change,
        piece.features,
        vector is None,
        document.source.value,
        document.source_id.hex,
        piece.part,
        document.conversation_id.hex if document.conversation_id else None,
        document.session[:200],
        document.position,
        document.speaker[:200],
        document.external_id[:200],
        _moment(document.happened_at),
        _moment(document.valid_from),
        _moment(document.valid_to),
        piece.text,
        piece.terms,
        vector,
    )


def _vectors(space: EmbeddingSpace, texts: list[str]) -> list[bytes | None]:
    embedder = inline_embedder(space)
    if embedder is None:
        return [None] * len(texts)
    return [row.tobytes() for row in np.asarray(embedder.embed_documents(texts), dtype="<f2")]


def _remove(owner: IndexOwner, source_ids: list[UUID], sources: set[Source]) -> int:
    removed = 0
    for start in range(0, len(source_ids), BATCH):
        batch = source_ids[start : start + BATCH]
        found = Passage.objects.filter(
            user_id=owner.user_id, source_id__in=batch, source__in=[source.value for source in sources]
        ).values_list("id", "terms")
        rows = list(found)
        if not rows:
            continue
        ids = [passage_id for passage_id, _ in rows]
        postings_remove(owner.number, rows)
        Passage.objects.filter(id__in=ids).delete()
        now = timezone.now()
        Tombstone.objects.bulk_create(
            Tombstone(user_id=owner.user_id, change=owner.change, passage_id=passage_id, created_at=now)
            for passage_id in ids
        )
        removed += len(ids)
    return removed


def _next_passage_id() -> int:
    """The id after the highest that was ever given: ids of removed passages are not used again."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = 'search_passage'")
        row = cursor.fetchone()
    return row[0] + 1 if row else 1


def _moment(value: datetime | None) -> str | None:
    """A time as Django stores it in SQLite."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ") if value is not None else None
