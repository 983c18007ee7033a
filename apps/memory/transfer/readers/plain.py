"""Plain lists: memories pasted or in a text file, one a line or bullet, as assistants answer when they are asked for them."""

import re
from collections.abc import Iterator

from apps.core.errors import InvalidInput, IzzyError

from ..records import Read, Reader, Upload
from .archives import documents
from .encoding import encoding_of, read_text
from .lists import noted_lines

_SUFFIXES = {".txt", ".md", ".markdown", ".text", ""}


def matches(upload: Upload) -> bool:
    """Any text that is not JSON cut off."""
    head = upload.head(2**14)
    try:
        text = head.decode(encoding_of(head), "ignore").lstrip("\ufeff \t\r\n") if head else ""
    except (IzzyError, LookupError):
        return False
    odd = sum(sign < " " and sign not in "\t\n\r\f" for sign in text)
    named = upload.pasted or upload.suffix in _SUFFIXES
    return (
        bool(text)
        and named
        and odd * 100 <= len(text)
        and not re.match(r"\{|\[\s*[\"{\]]", text)
        and not text.startswith(("PK", "%PDF"))
    )


def read(upload: Upload) -> Iterator[Read]:
    document, *others = documents(upload)
    if others:
        raise InvalidInput("This is an archive; a plain list is one text.")
    empty = True
    for record in noted_lines(document.name, read_text(document)):
        empty = False
        yield record
    if empty:
        raise InvalidInput("There is no memory in this text.")


reader = Reader(
    name="text",
    title="Plain list (pasted, or a text file)",
    matches=matches,
    read=read,
    help="Ask the other assistant to list all that it remembers of you, one memory a line, and paste its answer.",
    rank=95,
)
