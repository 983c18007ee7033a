"""Opens what was uploaded, a file, a zip or a gzip, as documents, and refuses archives that are not to be trusted."""

import gzip
import io
import re
import shutil
import stat
import struct
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from posixpath import splitext
from typing import IO, BinaryIO

from apps.core.errors import DAMAGED, InvalidInput, TooLarge

from ..uploads import Upload

MAX_ENTRIES = 100_000
MAX_UNPACKED = 8 * 2**30
"""Bytes of all entries of an archive together, and of a gzip."""
MAX_RATIO = 200
RATIO_FROM = 8 * 2**20
"""Bytes from which on an archive may not be more than MAX_RATIO times as large unpacked: text packs up to 30 times."""
_PART = re.compile(
    r"^(conversations|projects|memories|design_chats|light_metadata|feedback)[-_ ()\d]*\.zip$"
)
_READABLE = re.compile(r"^(?!manifest).*\.(json|jsonl|af|md|markdown|csv|tsv|txt)$", re.IGNORECASE)
CHECKED = 50  # files of an archive that nobody knows which are looked at for damage
_JUNK = re.compile(
    r"(^|/)(__MACOSX|\.git|\.obsidian|\.trash|\.Trash|node_modules)/|(^|/)(\._|\.DS_Store$|Thumbs\.db$)"
)
ZIP, GZIP = b"PK", b"\x1f\x8b"
UTF8_NAME = 0x800  # the flag of a zip's entry that says so
UNICODE_PATH = (
    0x7075  # the extra field that has the name in UTF-8, with a checksum of the one that it stands for
)


Stream = IO[bytes] | gzip.GzipFile


@dataclass(frozen=True, slots=True)
class Document:
    """A file of an upload; `name` is its path within, in the archive's spelling with forward slashes."""

    name: str
    size: int  # bytes unpacked, as the archive says; 0 where it does not
    _open: Callable[[], Stream]
    modified: datetime | None = None  # of a file in a zip, in the time zone of who packed it
    _packed: int = 0  # bytes, of what does not say how large it is unpacked

    @property
    def stem(self) -> str:
        return splitext(self.base)[0]

    @property
    def base(self) -> str:
        return self.name.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return splitext(self.base)[1].lower()

    def open(self) -> BinaryIO:
        """The bytes. Reading raises InvalidInput where they are broken or cut off, TooLarge where there are too many."""
        try:
            file = self._open()
        except DAMAGED as error:
            raise InvalidInput(_broken(self.name), code="broken_archive") from error
        return io.BufferedReader(_Guarded(file, self.name, self._packed), 2**16)

    def head(self, count: int) -> bytes:
        with self.open() as file:
            return file.read(count)


class _Guarded(io.RawIOBase):
    """A stream of an archive: its faults become sentences, and no more than MAX_UNPACKED bytes come out of it."""

    def __init__(self, file: Stream, name: str, packed: int = 0) -> None:
        self.file, self.name, self.packed, self.count = file, name, packed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        try:
            data = self.file.read(len(buffer))
        except DAMAGED as error:
            raise InvalidInput(_broken(self.name), code="broken_archive") from error
        self.count += len(data)
        if _is_bomb(self.count, self.packed or self.count):
            raise TooLarge(_bomb(self.name))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self.file.close()
        super().close()


def documents(upload: Upload) -> list[Document]:
    """The files of an upload in the order of their names; a file that is no archive is its own only document.

    Zips within a zip are opened too, one level deep, where it is an export in parts or holds nothing else to read.
    InvalidInput for an archive that is broken, cut off, encrypted or names paths outside itself, or a zip three deep;
    TooLarge for a zip bomb.
    """
    head, name = upload.head(4), upload.name or "the pasted text"
    if head.startswith(GZIP):
        packed, inner = upload.size, re.sub(r"\.gz$", "", name, flags=re.IGNORECASE)
        return [Document(inner, 0, partial(gzip.open, upload.path), None, packed)]
    if not head.startswith(ZIP):
        return [Document(name, upload.size, lambda: upload.path.open("rb"))]
    listed = _members(upload.path, upload.size, name)
    parts = {document for document in listed if _PART.search(document.base)}
    if not parts and not any(_READABLE.search(document.base) for document in listed):
        parts = {document for document in listed if document.suffix == ".zip"}
    found = [
        each
        for document in listed
        for each in (_unfolded(document) if document in parts else [document])
    ]
    return sorted(found, key=lambda document: document.name)


def check(upload: Upload) -> None:
    """InvalidInput or TooLarge where the upload is an archive that cannot be read, as far as the beginnings of its files tell."""
    for document in documents(upload)[:CHECKED]:
        document.head(2**18)


def _unfolded(document: Document) -> Iterator[Document]:
    """The documents of the zip that a document is."""
    copied = tempfile.SpooledTemporaryFile(max_size=16 * 2**20)  # noqa: SIM115
    with document.open() as file:
        shutil.copyfileobj(file, copied)
    for member in _members(copied, copied.tell(), document.name):
        if member.suffix == ".zip":
            raise InvalidInput(
                f"{document.name} holds a zip again ({member.name}). Unpack it and import what is inside."
            )
        yield replace(member, name=f"{document.name}/{member.name}")


def _members(file: Path | IO[bytes], packed: int, name: str) -> list[Document]:
    """The files that a zip of `packed` bytes holds, checked, without folders, links and what systems leave behind."""
    try:
        archive = zipfile.ZipFile(file)  # closed with the last document that refers to it
        entries = archive.infolist()
    except DAMAGED as error:
        raise InvalidInput(_broken(name), code="broken_archive") from error
    if len(entries) > MAX_ENTRIES:
        raise TooLarge(f"{name} holds {len(entries):,} files; at most {MAX_ENTRIES:,} are accepted.")
    if _is_bomb(sum(entry.file_size for entry in entries), packed):
        raise TooLarge(_bomb(name))
    # By path: of two files of one name the later counts, as where one unpacks it.
    found: dict[str, Document] = {}
    for entry in entries:
        path = _path(entry)
        if path.startswith("/") or re.match(r"[A-Za-z]:", path) or ".." in path.split("/"):
            raise InvalidInput(
                f"{name} names a path outside itself ({path[:100]!r}); it is not imported."
            )
        if entry.flag_bits & 0x1:
            raise InvalidInput(f"{name} is encrypted. Unpack it and zip it again without a password.")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            # Others keep as much in memory while they are unpacked as whoever packed them chose.
            raise InvalidInput(f"{name} is packed in an unusual way. Unpack it and zip it again.")
        if _is_bomb(entry.file_size, entry.compress_size):
            raise TooLarge(_bomb(name))
        if not (path.endswith("/") or stat.S_ISLNK(entry.external_attr >> 16) or _JUNK.search(path)):
            found[path] = _document(archive, entry, path)
    return list(found.values())


def _path(entry: zipfile.ZipInfo) -> str:
    """Its path as people write it: with slashes, its letters put together (macOS takes é apart), and in UTF-8 where it is so,
    which neither macOS nor `zip` says of it, or where that stands beside a name in whatever code page Windows had."""
    name = entry.filename
    if not entry.flag_bits & UTF8_NAME:
        with suppress(UnicodeError):
            name = (_unicode_path(entry) or name.encode("cp437")).decode("utf-8")
    return unicodedata.normalize("NFC", name.replace("\\", "/"))


def _unicode_path(entry: zipfile.ZipInfo) -> bytes:
    """The name of the extra field, b"" where there is none, or one of a name that was changed without it."""
    extra, stands_for = entry.extra, zlib.crc32(entry.orig_filename.encode("cp437"))
    while len(extra) >= 4:
        kind, size = struct.unpack_from("<HH", extra)
        field, extra = extra[4 : 4 + size], extra[4 + size :]
        if kind == UNICODE_PATH and field[1:5] == struct.pack("<L", stands_for):
            return field[5:].partition(b"\0")[0]
    return b""


def _document(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, path: str) -> Document:
    """A file of a zip; a gzip among them is unpacked."""
    if not path.lower().endswith(".gz"):
        return Document(path, entry.file_size, partial(archive.open, entry), _modified(entry))
    packed = max(entry.file_size, 1)
    return Document(path[:-3], 0, lambda: gzip.GzipFile(fileobj=archive.open(entry)), None, packed)


def _modified(entry: zipfile.ZipInfo) -> datetime | None:
    """When the file was changed; None where the zip does not say (1980 stands for that)."""
    try:
        return datetime(*entry.date_time, tzinfo=UTC) if entry.date_time[0] > 1980 else None
    except ValueError:
        return None


def _is_bomb(size: int, packed: int) -> bool:
    return size > MAX_UNPACKED or (size > RATIO_FROM and size > max(packed, 1) * MAX_RATIO)


def _broken(name: str) -> str:
    return f"{name} is broken or cut off: it cannot be unpacked to its end. Download or pack it again."


def _bomb(name: str) -> str:
    return f"{name} would become far larger unpacked than an export is; it is not imported."
