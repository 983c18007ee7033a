"""Foreign texts as files of the file memory, in its limits."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from apps.memory.files.texts import MAX_FILE_CHARS
from apps.memory.models import MAX_PATH_CHARS

from ..records import ForeignFile, Read, Skipped, content_key
from .fields import path_part, pieces


def files_of(
    place: str,
    path: str,
    content: str,
    created_at: datetime | None = None,
    updated_at: datetime | None = None,
) -> Iterator[ForeignFile]:
    """The file, or several with numbered names where the text is longer than a file may be. `path` begins with /memories/."""
    if len(path) > MAX_PATH_CHARS - 20:
        path = f"{path[: path.index('/', 10)]}/{content_key(path)[:16]}-{path_part(path.rpartition('/')[2])}"
    stem, dot, ending = path.rpartition(".")
    if not dot or "/" in ending:
        stem, ending = path, "md"
    for number, part in enumerate(pieces(content, MAX_FILE_CHARS), start=1):
        yield ForeignFile(
            place=place,
            path=f"{stem}.{ending}" if number == 1 else f"{stem}-{number}.{ending}",
            content=part,
            created_at=created_at,
            updated_at=updated_at,
        )


def distinct(found: Iterator[Read]) -> Iterator[Read]:
    """The records; a second file of the same path gets a number, one that says the same too is skipped."""
    contents: dict[str, str] = {}
    for record in found:
        if not isinstance(record, ForeignFile):
            yield record
            continue
        path, number = record.path, 1
        while path in contents and contents[path] != record.content:
            stem, _, ending = record.path.rpartition(".")
            number += 1
            path = f"{stem} ({number}).{ending}"
        if path in contents:
            yield Skipped(record.place, "The same file stands in this export more than once.")
        else:
            contents[path] = record.content
            yield replace(record, path=path)
