"""Hermes: MEMORY.md and USER.md, whose entries a line with § parts."""

import re
from collections.abc import Iterator

from apps.core.errors import InvalidInput, IzzyError

from ..records import Read, Reader, Skipped, Upload, content_key
from .archives import Document, documents
from .encoding import read_text
from .fields import notes_of, text_of

_BETWEEN = re.compile(r"^[ \t]*§[ \t]*$", re.MULTILINE)
_NAMES = {"memory.md", "user.md"}


def _of_hermes(document: Document, among: frozenset[str]) -> bool:
    """Whether a file is one of the two: by its § lines, or by its name where both stand in a folder `memories`."""
    if document.suffix not in {".md", ".txt", ""}:
        return False
    folder, _, base = document.name.lower().rpartition("/")
    both = (
        all(f"{folder}/{name}" in among for name in _NAMES) and folder.rpartition("/")[2] == "memories"
    )
    return (both and base in _NAMES) or bool(
        _BETWEEN.search(document.head(2**16).decode("utf-8", "ignore"))
    )


def _files(upload: Upload) -> list[Document]:
    listed = documents(upload)
    among = frozenset(document.name.lower() for document in listed)
    return [document for document in listed if _of_hermes(document, among)]


def matches(upload: Upload) -> bool:
    try:
        listed = documents(upload)
        among = frozenset(document.name.lower() for document in listed)
        named = [each for each in listed if len(listed) == 1 or each.base.lower() in _NAMES]
        return any(_of_hermes(document, among) for document in named)
    except IzzyError:
        return False


def read(upload: Upload) -> Iterator[Read]:
    files = _files(upload) or [each for each in documents(upload) if each.base.lower() in _NAMES]
    if not files:
        raise InvalidInput(
            "This holds neither a MEMORY.md nor a USER.md with entries that a line with § parts."
        )
    for document in files:
        about_user = document.base.lower().startswith("user")
        seen: set[str] = set()
        for number, entry in enumerate(_BETWEEN.split(read_text(document)), start=1):
            text, place = text_of(entry), f"{document.name}, entry {number}"
            key = content_key("memory", " ".join(text.casefold().split()))
            if not text:
                continue
            if text.startswith("[BLOCKED:"):
                yield Skipped(place, "Hermes itself held this entry back as unsafe.")
            elif key in seen:
                yield Skipped(place, "The same entry stands above.")
            else:
                seen.add(key)
                kind = "fact" if about_user else None
                yield from notes_of(
                    place, key, text, kind=kind, tags=["hermes", "user"] if about_user else ["hermes"]
                )


reader = Reader(
    name="hermes",
    title="Hermes (MEMORY.md, USER.md)",
    matches=matches,
    read=read,
    help="The files in $HERMES_HOME/memories, one of them or both in a zip.",
    rank=45,
)
