"""Records of memory files with their revisions, and how they are taken in."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated
from uuid import UUID

from pydantic import Field

from apps.core.db.writing import insert_all
from apps.core.errors import IzzyError
from apps.core.http.shapes import Checked, Lax, text
from apps.core.transfer import (
    CHANGED,
    DELETED,
    GONE,
    KNOWN,
    Entry,
    RecordId,
    RecordInput,
    RecordTime,
    Row,
    Taking,
    Write,
    derived_id,
    ids_here,
    pages,
    row_of,
    shaped,
    write_nothing,
)
from apps.memory.files.services import (
    MAX_FILE_REVISIONS,
    MAX_FILES,
    check_free,
    file_text,
    files_index,
    owner_lock,
)
from apps.memory.files.texts import clean_file_text, clean_path
from apps.memory.models import FileAction, MemoryFile, MemoryFileRevision, Origin, Trust
from apps.memory.notes.revisions import MAX_REASON_CHARS
from apps.search.services import documents_prepare

from .records import ForeignFile

FULL = f"There are {MAX_FILES:,} files already."
PATH = Checked(clean_path, {"type": "string"})
CONTENT = Checked(clean_file_text, {"type": "string"})


class FileRecord(RecordInput):
    """A file."""

    id: RecordId
    path: Annotated[str, PATH]
    content: Annotated[str, CONTENT]
    origin: Annotated[Origin, Lax] = Origin.IMPORT
    trust: Annotated[Trust, Lax] = Trust.UNTRUSTED
    created_at: RecordTime | None = None
    updated_at: RecordTime | None = None


class FileRevisionRecord(RecordInput):
    """A state that a file had; it stands behind its file."""

    file: RecordId
    version: int = Field(ge=1, le=2**31 - 1)
    path: Annotated[str, PATH]
    content: Annotated[str, CONTENT]
    trust: Annotated[Trust, Lax]
    action: Annotated[FileAction, Lax]
    actor: Annotated[Origin, Lax]
    reason: Annotated[str, text(MAX_REASON_CHARS, allow_empty=True)] = ""
    created_at: RecordTime


def file_rows(user_id: UUID) -> Iterator[Row]:
    """Each file with its revisions behind it; deleted files are left out."""
    revisions = MemoryFileRevision.objects.for_user(user_id)
    for files in pages(MemoryFile.objects.for_user(user_id), 20):  # one may have 100,000 characters
        former = defaultdict(list)
        for row in revisions.filter(file_id__in=[file.pk for file in files]).order_by("version"):
            former[row.file_id].append(row)
        for file in files:
            yield row_of("file", FileRecord, file)
            for row in former[file.pk]:
                yield row_of("file_revision", FileRevisionRecord, row)


def files_plan(taking: Taking, entries: Sequence[Entry]) -> Write:
    """Plans files with their revisions. One whose path is taken by another gets a name beside it."""
    own = [entry for entry in entries if entry.kind == "file"]
    foreign = [_foreign(taking, entry) for entry in entries if entry.kind == "foreign_file"]
    given = shaped(taking, [*own, *foreign], FileRecord)
    former = shaped(taking, [e for e in entries if e.kind == "file_revision"], FileRevisionRecord)
    ids = ids_here(taking, "file", {file.id for _, file in given} | {row.file for _, row in former})
    there = MemoryFile.everything.filter(pk__in=ids.there).in_bulk()
    taken = dict(MemoryFile.objects.for_user(taking.user_id).values_list("path", "pk"))
    made: dict[UUID, MemoryFile] = {}
    for entry, record in given:
        key = ids[record.id]
        if key in made or key in taking.fresh:
            taking.report.skip(entry, KNOWN)
        elif key in there:
            same = KNOWN if there[key].content == record.content else CHANGED
            taking.report.skip(entry, DELETED if there[key].deleted_at else same)
        elif len(taken) >= MAX_FILES:
            taking.report.skip(entry, FULL)
        elif _same(taken.get(record.path), record.content):
            taking.report.merge(entry.kind)
        else:
            try:
                path = _free_path(record.path, taken)
                check_free(taking.user_id, path, coming=[file.path for file in made.values()])
            except IzzyError as error:
                taking.report.skip(entry, error.message.removeprefix("Error: "))
                continue
            made[key] = _file(taking, record, key, path)
            taken[path] = key
            taking.report.take(entry.kind)
    revisions = _revisions(taking, former, made, ids.here)
    taking.fresh |= made.keys()
    if not made:
        return write_nothing
    files = list(made.values())
    documents_prepare(
        user_id=taking.user_id, texts=[file_text(file.path, file.content) for file in files]
    )

    def write() -> None:
        owner_lock(taking.user_id)
        for file in files:
            check_free(taking.user_id, file.path)
        insert_all(files)
        insert_all(revisions)
        files_index(taking.user_id, files)

    return write


def _foreign(taking: Taking, entry: Entry) -> Entry:
    file: ForeignFile = entry.value
    given = {
        "id": str(derived_id(taking.user_id, taking.format, "file", file.path)),
        "path": file.path,
        "content": file.content,
        "created_at": file.created_at or file.updated_at,
        "updated_at": file.updated_at,
    }
    return Entry(entry.kind, given, entry.place, entry.line)


def _same(key: UUID | None, content: str) -> bool:
    return (
        key is not None
        and MemoryFile.everything.filter(pk=key).values_list("content", flat=True).first() == content
    )


def _free_path(path: str, taken: Mapping[str, UUID]) -> str:
    """The path, or where another file has it one with a number: /memories/plan (2).md"""
    place, number, free = PurePosixPath(path), 1, path
    while free in taken:
        number += 1
        free = str(place.with_name(f"{place.stem} ({number}){place.suffix}"))
    return clean_path(free)


def _file(taking: Taking, record: FileRecord, key: UUID, path: str) -> MemoryFile:
    created = record.created_at or taking.now
    return MemoryFile(
        id=key,
        user_id=taking.user_id,
        path=path,
        content=record.content,
        size=len(record.content.encode()),
        origin=record.origin if taking.own else Origin.IMPORT,
        trust=record.trust if taking.own else Trust.USER if taking.accept else Trust.UNTRUSTED,
        created_at=created,
        updated_at=record.updated_at or created,
    )


def _revisions(
    taking: Taking,
    former: Sequence[tuple[Entry, FileRevisionRecord]],
    made: Mapping[UUID, MemoryFile],
    here: Mapping[UUID, UUID],
) -> list[MemoryFileRevision]:
    """The revisions of new files; a file that is here keeps its own."""
    rows: dict[tuple[UUID, int], MemoryFileRevision] = {}
    counts: dict[UUID, int] = defaultdict(int)
    for entry, record in former:
        file = made.get(here[record.file])
        if file is None:
            there = MemoryFile.everything.filter(pk=here[record.file], user_id=taking.user_id).exists()
            taking.report.skip(entry, KNOWN if there or here[record.file] in taking.fresh else GONE)
        elif (file.pk, record.version) in rows or counts[file.pk] >= MAX_FILE_REVISIONS:
            taking.report.skip(entry, KNOWN)
        else:
            counts[file.pk] += 1
            taking.report.take("file_revision")
            others = {} if taking.own else {"trust": file.trust, "actor": Origin.IMPORT}
            rows[file.pk, record.version] = MemoryFileRevision(
                user_id=taking.user_id,
                file_id=file.pk,
                **record.columns(MemoryFileRevision) | others,
            )
    return list(rows.values())
