"""Izzy's own export as it is read: a record a line, JSON in UTF-8. A line that cannot be read is identified by its
number, and takes nothing with it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from django.conf import settings

from apps.core.errors import InvalidInput
from apps.core.text import strict_loads, unstorable
from apps.core.transfer import Entry, groups

from .records import Upload

NAME = "izzy"
VERSION = 1
MAX_DEPTH_NOTE = "It is nested too deeply."
_BOM = b"\xef\xbb\xbf"
_LOOKED_AT = 65_536


@dataclass(frozen=True, slots=True)
class FileLine:
    """A record, or the sentence that says why there is none, and where in the file it ends. `end` is the file's last record."""

    entry: Entry
    ends: int
    problem: str = ""
    end: bool = False


def is_own(upload: Upload) -> bool:
    """Whether one of the first lines is a record of Izzy's own."""
    kinds = {kind for group in groups() if group.rows for kind in group.kinds}
    for line in upload.head(_LOOKED_AT).removeprefix(_BOM).splitlines()[:10]:
        try:
            value = json.loads(line)
        except ValueError:
            found = b'"format":"izzy"' in line.replace(b" ", b"")
        except RecursionError:
            found = False
        else:
            kind = value.get("type") if isinstance(value, dict) else None
            of_ours = kind == "manifest" and value.get("format") == NAME
            found = of_ours or (kind in kinds and ("id" in value or kind == "decay"))
        if found:
            return True
    return False


def check_encoding(upload: Upload) -> None:
    """Raises InvalidInput for a file that is no text in UTF-8 from its beginning on."""
    head = upload.head(4)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidInput("The file is in UTF-16. Save it as UTF-8.", code="wrong_encoding")
    if head.startswith((b"\x1f\x8b", b"PK")):
        raise InvalidInput("The file is packed. Unpack it first.", code="wrong_encoding")


def max_line_bytes() -> int:
    """A line may have so many: at the least those of a record with the largest file that may be attached, in base64."""
    return max(32_000_000, settings.IZZY_ATTACHMENT_LIMIT * 4 // 3 + 100_000)


def lines(file: BinaryIO, *, at: int = 0, number: int = 0) -> Iterator[FileLine]:
    """The lines from byte `at` on, behind line `number`. Empty lines are passed over."""
    file.seek(at)
    limit = max_line_bytes()
    while raw := file.readline(limit):
        number += 1
        whole, entry = True, Entry("", None, f"line {number}", number)
        while len(raw) >= limit and not raw.endswith(b"\n"):
            whole, raw = False, file.readline(limit)  # the rest of it
            if not raw:
                break
        ends = file.tell()
        if not whole:
            yield FileLine(entry, ends, f"The line has more than {limit:,} bytes.")
            continue
        raw = raw.removeprefix(_BOM) if number == 1 else raw
        if raw.strip():
            yield _line(raw, entry, ends)


def _line(raw: bytes, entry: Entry, ends: int) -> FileLine:
    try:
        value = strict_loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return FileLine(entry, ends, "The line is no text in UTF-8.")
    except RecursionError:
        return FileLine(entry, ends, MAX_DEPTH_NOTE)
    except ValueError as error:
        cut = "" if raw.endswith(b"\n") else " The file seems to be cut off here."
        return FileLine(entry, ends, f"The line is no JSON: {str(error)[:150]}.{cut}")
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        return FileLine(entry, ends, "The line is no record: an object with a type.")
    kind = value["type"][:64]
    entry = Entry(kind, value, entry.place, entry.line)
    if problem := unstorable(value, raw):
        return FileLine(entry, ends, f"The record contains {problem}.")
    if kind == "manifest" and (problem := _manifest_problem(value)):
        raise InvalidInput(problem, code="wrong_version")
    return FileLine(entry, ends, end=kind == "end")


def _manifest_problem(value: Mapping[str, Any]) -> str:
    version = value.get("version")
    if value.get("format") != NAME:
        return "The file is no export of Izzy's."
    if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
        return (
            f"The file is from a newer Izzy (version {version} of the format; this one knows {VERSION})."
        )
    return ""
