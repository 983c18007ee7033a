"""A file cut into batches of records, each written in one transaction, and where to go on behind each."""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from apps.core.transfer import Entry, RecordGroup, group_of

from .lines import FileLine, lines
from .records import (
    ForeignConversation,
    ForeignEdge,
    ForeignFile,
    ForeignNote,
    Read,
    Reader,
    Skipped,
    Upload,
    Wrong,
    content_key,
)

RECORDS = 300
"""Records of a batch; those that belong to one head go beyond it together, up to MOST_RECORDS."""
MOST_RECORDS = 2_000
CHARS = 300_000
"""Characters of a batch, about: so many are read for search in a second or two."""
MESSAGES = 300
UNKNOWN = "This Izzy does not know records of this kind."
KINDS = {
    ForeignNote: "foreign_note",
    ForeignEdge: "foreign_edge",
    ForeignFile: "foreign_file",
    ForeignConversation: "foreign_conversation",
}


@dataclass(slots=True)
class Batch:
    """Records of one group, and what could not be read between them. `at`, `line` and `mark` hold behind its last one."""

    group: RecordGroup | None = None
    entries: list[Entry] = field(default_factory=list)
    skipped: list[tuple[Entry, str]] = field(default_factory=list)
    wrong: list[tuple[Entry, str]] = field(default_factory=list)
    at: int = 0
    line: int = 0
    mark: int = 0
    weight: int = 0
    complete: bool = False  # the file's last record was read

    @property
    def count(self) -> int:
        return len(self.entries) + len(self.skipped) + len(self.wrong)


def own_batches(file: BinaryIO, *, at: int = 0, number: int = 0) -> Iterator[Batch]:
    """Batches of Izzy's own export from byte `at` on, behind line `number`."""
    batch = Batch(at=at, line=number)
    for line in lines(file, at=at, number=number):
        kind = line.entry.kind
        group = None if line.problem else group_of(kind)
        if batch.count and _is_full(batch, group, kind):
            yield batch
            batch = Batch(at=batch.at, line=batch.line)
        _add(batch, line, group)
    yield batch


def _is_full(batch: Batch, group: RecordGroup | None, kind: str) -> bool:
    """Whether a record of that group begins another batch; one that could not be read (None) stands among those before it."""
    if group is not None and batch.group is not None and group is not batch.group:
        return True
    if batch.count >= MOST_RECORDS:
        return True
    if batch.count < RECORDS and batch.weight < CHARS:
        return False
    if group is None:
        return batch.group is None or not batch.group.whole
    return not group.whole or kind in (group.heads or group.kinds)


def _add(batch: Batch, line: FileLine, group: RecordGroup | None) -> None:
    batch.weight += line.ends - batch.at
    batch.at, batch.line = line.ends, line.entry.line or 0
    kind = line.entry.kind
    if line.problem:
        batch.wrong.append((line.entry, line.problem))
    elif line.end:
        batch.complete = True
    elif group is None or group.rows is None:
        if kind != "manifest":
            batch.skipped.append((line.entry, UNKNOWN))
    else:
        batch.group = group
        batch.entries.append(line.entry)


class ReadOtherwise(Exception):
    """Other records stand before the place than stood there when it was noted: Izzy was updated meanwhile."""


def foreign_batches(reader: Reader, upload: Upload, *, at: int = 0, mark: int = 0) -> Iterator[Batch]:
    """Batches of another program's file behind its first `at` records; a long conversation counts as several.

    `mark` stands for which those records are. Raises ReadOtherwise where they are others.
    """
    batch, number, so_far = Batch(at=at, mark=mark), 0, 0
    for number, (kind, value) in enumerate(_parts(reader, upload), 1):
        so_far = _marked(kind, value, so_far)
        if number <= at:
            if number == at and so_far != mark:
                raise ReadOtherwise
            continue
        group = group_of(kind)
        if batch.count and _is_full(batch, group, kind):
            yield batch
            batch = Batch(at=batch.at, mark=batch.mark)
        batch.at, batch.mark = number, so_far
        entry = Entry(kind, value, value.place)
        if isinstance(value, Skipped):
            batch.skipped.append((entry, value.reason))
        elif isinstance(value, Wrong):
            batch.wrong.append((entry, value.reason))
        else:
            batch.group = group
            batch.entries.append(entry)
            batch.weight += _weight(value)
    if number < at:
        raise ReadOtherwise
    batch.complete = True
    yield batch


def _marked(kind: str, value: Read, before: int) -> int:
    named = f"{kind} {getattr(value, 'key', value.place)}\n"
    return zlib.crc32(named.encode("utf-8", "surrogatepass"), before)


def _parts(reader: Reader, upload: Upload) -> Iterator[tuple[str, Read]]:
    """The records with their kinds. Links come last: all notes are there by then, and a page with its links is no batch of its own.
    A note under the id of one that said something else is another one."""
    links: list[ForeignEdge] = []
    texts: dict[str, int] = {}
    for value in reader.read(upload):
        if (
            isinstance(value, ForeignNote)
            and texts.setdefault(value.key, said := hash(value.content)) != said
        ):
            value = replace(value, key=content_key(value.key, value.content))
        if isinstance(value, ForeignEdge):
            links.append(value)
        elif not isinstance(value, ForeignConversation) or len(value.messages) <= MESSAGES:
            yield KINDS.get(type(value), "record"), value
        else:
            for start in range(0, len(value.messages), MESSAGES):
                some = value.messages[start : start + MESSAGES]
                left = () if start else value.left
                yield "foreign_conversation", replace(value, messages=some, left=left)
    for link in links:
        yield "foreign_edge", link


def foreign_count(reader: Reader, upload: Upload) -> Iterator[int]:
    """Reads the file to its end, counting; raises what the reader raises. Gives the count now and then, and in the end."""
    count = 0
    for count, _ in enumerate(_parts(reader, upload), 1):
        if count % RECORDS == 0:
            yield count
    yield count


def _weight(value: Any) -> int:
    if isinstance(value, ForeignConversation):
        return sum(len(message.content) for message in value.messages) + 1000
    return len(getattr(value, "content", ""))
