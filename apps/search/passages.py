"""Statements that write passages. Bare SQL: saving a note runs them once per note, and model objects cost as much as
all the rest together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from apps.search.documents import Document, Source
from apps.search.fulltext import postings_add, postings_remove

MAX_NAME = 200

_OWNER = (
    "SELECT o.number, p.language, s.name, s.slot FROM search_indexowner o "
    "LEFT JOIN accounts_preferences p ON p.user_id = o.user_id "
    "LEFT JOIN search_embeddingspace s ON s.state = 'active' WHERE o.user_id = ?"
)
_COLUMNS = (
    "id, user_id, change, features, pending, source, source_id, part, conversation_id, session, position, speaker, "
    "external_id, happened_at, valid_from, valid_to, past, text, terms, facet, labels"
)
_TOMBSTONE = "INSERT INTO search_tombstone(user_id, change, passage_id, created_at) VALUES (?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Owner:
    """The user in the transaction that writes: `change` is this transaction's, `space` the active one's name ("": none)."""

    user_id: UUID
    number: int
    change: int
    language: str
    space: str
    slot: str


@dataclass(frozen=True, slots=True)
class Piece:
    """One passage to be written."""

    document: Document
    part: int
    text: str
    terms: str
    features: bytes
    labels: str = ""


def owner_begin(user_id: UUID) -> Owner:
    """The user as owner of passages, with the change number raised; made at the first write."""
    found = _execute(_OWNER, (user_id.hex,))
    if not found:
        _execute(
            "INSERT INTO search_indexowner(user_id, change, tombstones_from) VALUES (?, 0, 0) "
            "ON CONFLICT (user_id) DO NOTHING",
            (user_id.hex,),
        )
        found = _execute(_OWNER, (user_id.hex,))
    number, language, space, slot = found[0]
    return Owner(user_id, int(number), change_raise(user_id), language or "", space or "", slot or "")


def change_raise(user_id: UUID) -> int:
    """The user's next change number, which no other writer gets."""
    raised = _execute(
        "UPDATE search_indexowner SET change = change + 1 WHERE user_id = ? RETURNING change", (user_id.hex,)
    )
    return int(raised[0][0])


def passages_insert(
    owner: Owner, pieces: Sequence[Piece], vectors: Sequence[bytes | None], *, slot: str
) -> None:
    """Write passages with their full text; one without a vector waits for it."""
    first = _next_id()
    rows = [
        _row(first + place, owner, piece, vector)
        for place, (piece, vector) in enumerate(zip(pieces, vectors, strict=True))
    ]
    sql = f"INSERT INTO search_passage({_COLUMNS}, vector_{slot}) VALUES ({', '.join('?' * 22)})"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.connection.executemany(sql, rows)
    postings_add(owner.number, ((first + place, piece.terms) for place, piece in enumerate(pieces)))


def passages_delete(owner: Owner, sources: Collection[Source], source_ids: Sequence[UUID]) -> int:
    """Remove the passages of some documents (a few hundred at most) from rows and full text, leaving tombstones."""
    sql = (
        f"SELECT id, terms FROM search_passage WHERE source_id IN ({_marks(source_ids)}) "  # noqa: S608
        f"AND +user_id = ? AND source IN ({_marks(sources)})"
    )
    names = [source_id.hex for source_id in source_ids]
    rows = _execute(sql, (*names, owner.user_id.hex, *(source.value for source in sources)))
    if not rows:
        return 0
    postings_remove(owner.number, rows)
    now = _moment(timezone.now())
    with connection.cursor() as cursor:
        bare = cursor.connection
        bare.executemany("DELETE FROM search_passage WHERE id = ?", [(row[0],) for row in rows])
        bare.executemany(_TOMBSTONE, [(owner.user_id.hex, owner.change, row[0], now) for row in rows])
    return len(rows)


def vectors_held(owner: Owner, source_ids: Collection[UUID]) -> dict[str, bytes]:
    """The vectors of these documents' passages in the active space, by their text."""
    sql = (
        f"SELECT text, vector_{owner.slot or 'a'} FROM search_passage "  # noqa: S608  the slot is a or b
        f"WHERE source_id IN ({_marks(source_ids)}) AND +user_id = ? AND NOT pending"
    )
    rows = _execute(sql, (*(source_id.hex for source_id in source_ids), owner.user_id.hex))
    return {text: vector for text, vector in rows if vector is not None}


def _row(passage_id: int, owner: Owner, piece: Piece, vector: bytes | None) -> tuple[object, ...]:
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
        document.session[:MAX_NAME],
        document.position,
        document.speaker[:MAX_NAME],
        document.external_id[:MAX_NAME],
        _moment(document.happened_at),
        _moment(document.valid_from),
        _moment(document.valid_to),
        document.past,
        piece.text,
        piece.terms,
        document.facet.value,
        piece.labels,
        vector,
    )


def _next_id() -> int:
    """The id after the highest that was ever given: ids of removed passages are not used again."""
    found = _execute("SELECT seq FROM sqlite_sequence WHERE name = 'search_passage'", ())
    return int(found[0][0]) + 1 if found else 1


def _moment(value: datetime | None) -> str | None:
    """A time as Django stores it in SQLite."""
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ") if value is not None else None


def _marks(values: Collection[object]) -> str:
    return ",".join("?" * len(values))


def _execute(sql: str, parameters: Sequence[object]) -> list[Any]:
    with connection.cursor() as cursor:
        return list(cursor.connection.execute(sql, parameters).fetchall())
