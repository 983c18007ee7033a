"""Records that readers of other programs' files give, and what a reader is.

A reader is pure: it sees a file and gives records, in the same order each time it is asked, and knows no database. Ids are
made from (user, name of the reader, key), so a second import of the same entry brings nothing new; a key is the foreign id,
or a hash of the content where there is none.
"""

import hashlib
import logging
import pkgutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib import import_module
from operator import attrgetter
from typing import Literal

from apps.core.errors import InvalidInput, IzzyError

from .readers.archives import check, documents
from .uploads import Upload as Upload

logger = logging.getLogger(__name__)

MAX_KEY_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignNote:
    """A note. Fields left None get Izzy's defaults; values are checked by the importer, with the limits of `MemoryInput`.

    Text over 20,000 characters is the reader's to cut into several notes or to give as a file. Times may lack a zone: UTC.
    """

    place: str  # for the report: `memories.json, entry 12`, `line 7`
    key: str
    content: str
    kind: str | None = None
    tags: Sequence[str] = ()
    importance: int | None = None
    tier: str | None = None
    category: str = ""
    occasions: Sequence[str] = ()
    archived: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignEdge:
    """A link between two notes of the same file, by their keys. It may come before them: links are taken last."""

    place: str
    source: str
    target: str
    relation: str = "related"
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignFile:
    """A text file for the folder of memory files: `path` begins with /memories/."""

    place: str
    path: str
    content: str
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMessage:
    """A message; a `speaker` is named only where it is neither the user nor the assistant of the other program."""

    key: str
    role: Literal["user", "assistant"]
    content: str
    created_at: datetime | None = None
    speaker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignConversation:
    """A conversation with what was said in it, oldest first; one without messages is skipped. `left` are the keys of messages of
    its other branches: an earlier export may have brought them. `updated_at` is when it last changed there, where the file says so."""

    place: str
    key: str
    messages: Sequence[ForeignMessage]
    left: Collection[str] = ()
    title: str = ""
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry that is not taken, although nothing is wrong with it; `reason` is a sentence for its owner."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class Wrong:
    """An entry that cannot be read; `reason` is a sentence that says why. The rest of the file is taken."""

    place: str
    reason: str


Record = ForeignNote | ForeignEdge | ForeignFile | ForeignConversation
Read = Record | Skipped | Wrong


@dataclass(frozen=True, slots=True)
class Reader:
    """A format of another program.

    `matches` looks at the beginning of a file, or the table of a zip, and never raises. `read` streams: it holds no more than
    one entry, or what its format makes unavoidable. It raises InvalidInput or TooLarge, with a sentence for the owner, where
    the file as a whole is not to be trusted (cut off, no such format, a zip bomb); the importer reads a file to its end
    before it takes anything, so nothing is half taken then.
    """

    name: str  # `chatgpt`: the format's name in REST and on the command line; also the channel of its conversations
    title: str  # `ChatGPT (export zip)`: what people read
    matches: Callable[[Upload], bool]
    read: Callable[[Upload], Iterator[Read]]
    help: str = ""  # a sentence: where its owner finds the file
    rank: int = field(
        default=50
    )  # `auto` asks the lowest first; what nearly everything matches (CSV, text) has 90


_readers: dict[str, Reader] = {}


def readers_load() -> None:
    """Registers every `Reader` that a module of the package of readers holds at its top."""
    module = import_module("apps.memory.transfer.readers")
    names = [found.name for found in pkgutil.iter_modules(module.__path__, f"{module.__name__}.")]
    for part in [module, *map(import_module, names)]:
        found = [value for value in vars(part).values() if isinstance(value, Reader)]
        _readers.update({reader.name: reader for reader in found})


def readers() -> list[Reader]:
    """All of them, in the order in which `auto` asks."""
    return sorted(_readers.values(), key=attrgetter("rank", "name"))


def reader_for(upload: Upload, name: str = "auto") -> Reader:
    """The reader of that name, or with `auto` the first that knows the file.

    InvalidInput where there is none, or where the archive is broken; TooLarge for a zip bomb.
    """
    if name != "auto":
        if name not in _readers:
            raise InvalidInput("There is no such format.", code="unknown_format", field="format")
        return _readers[name]
    if not upload.head(1):
        raise InvalidInput("The file is empty.", code="unknown_format", field="file")
    documents(upload)
    for reader in readers():
        if _matches(reader, upload):
            return reader
    check(upload)
    understood = ", ".join(reader.title for reader in readers())
    raise InvalidInput(
        f"This file is in no format that Izzy knows. It reads: {understood}.",
        code="unknown_format",
        field="format",
    )


def _matches(reader: Reader, upload: Upload) -> bool:
    try:
        return reader.matches(upload)
    except IzzyError:
        raise
    except Exception:  # whatever it stumbled over, the file is none of its own, and the others are asked
        logger.exception("the reader %s could not look at a file", reader.name)
        return False


def content_key(*parts: str) -> str:
    """A key for what has no id: a hash of what it says."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
