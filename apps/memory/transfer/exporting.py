"""Exports: all records of a user as JSON Lines, or Markdown in a zip; in chunks, whatever there is of it."""

import json
import zipfile
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.core.db.pool import in_db
from apps.core.transfer import Document, Row, groups, record_groups
from apps.memory.models import Memory
from apps.memory.notes.selectors import memory_get

from .documents import note_documents
from .lines import NAME, VERSION
from .note_records import note_rows

CHUNK = 65_536
OLDEST, NEWEST = datetime(1980, 1, 1, tzinfo=UTC), datetime(2107, 12, 31, tzinfo=UTC)  # of a zip


def export_lines(user_id: UUID) -> Iterator[bytes]:
    """The records of a user, a line of JSON each: a manifest, the rows of each app, and the end with how many there are. The same
    state gives the same bytes."""
    return _lines(row for group in groups() for row in (group.rows(user_id) if group.rows else ()))


def note_lines(user_id: UUID, memory_id: UUID) -> Iterator[bytes]:
    """One note with what it was before, as such a file, which another Izzy takes in. NotFound."""
    return _lines(note_rows(user_id, _chosen(user_id, memory_id)))


def note_markdown(user_id: UUID, memory_id: UUID) -> Document:
    """One note as Markdown, as it stands in the folder of an export. NotFound."""
    (document,) = note_documents(user_id, _chosen(user_id, memory_id))
    return document


def _chosen(user_id: UUID, memory_id: UUID) -> QuerySet[Memory]:
    return Memory.objects.owned_by(user_id).filter(pk=memory_get(user_id, memory_id).pk)


def _lines(rows: Iterable[Row]) -> Iterator[bytes]:
    counts: dict[str, int] = {}
    yield _line({"type": "manifest", "format": NAME, "version": VERSION})
    for row in rows:
        counts[row["type"]] = counts.get(row["type"], 0) + 1
        yield _line(row)
    yield _line({"type": "end", "counts": counts})


def _line(row: Any) -> bytes:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


class _Buffer:
    """A file that only grows: what a zip writes until it is taken."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None: ...

    def taken(self) -> bytes:
        data, self._parts = b"".join(self._parts), []
        return data


def export_markdown(user_id: UUID) -> Iterator[bytes]:
    """A zip with a folder `izzy`: a note a file, the memory files, conversations and capabilities."""
    buffer = _Buffer()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[call-overload]
        for group in groups():
            for document in group.documents(user_id) if group.documents else ():
                with archive.open(_entry(document), "w") as file:
                    for part in document.parts:
                        file.write(part.encode())
                        if data := buffer.taken():
                            yield data
                if data := buffer.taken():
                    yield data
    yield buffer.taken()


def _entry(document: Document) -> zipfile.ZipInfo:
    moment = min(max(document.updated_at.astimezone(UTC), OLDEST), NEWEST)
    entry = zipfile.ZipInfo(f"izzy/{document.path}", moment.timetuple()[:6])
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def conversation_export(user_id: UUID, conversation_id: UUID) -> Document:
    """One conversation as Markdown. NotFound for one that is not the user's."""
    find = record_groups["conversations"].document
    assert find is not None  # noqa: S101  the chat registers it
    return find(user_id, conversation_id)


async def streamed(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """The parts in chunks of about CHUNK bytes, each made on the database pool when it is asked for."""
    while chunk := await in_db(_chunk, parts):
        yield chunk


def _chunk(parts: Iterator[bytes]) -> bytes:
    taken, size = [], 0
    for part in parts:
        taken.append(part)
        size += len(part)
        if size >= CHUNK:
            break
    return b"".join(taken)
