"""A file that was brought, looked at and read in the reading process, which a hostile one cannot hold up."""

from dataclasses import dataclass

from asgiref.sync import async_to_sync

from apps.chat.attachments.kinds import kind_of
from apps.chat.models import AttachmentKind
from apps.core.errors import InvalidInput, TooLarge
from apps.core.text import estimate_tokens, storable

INLINE_CHARS = 12_000
"""Of a text, its beginning that goes into the prompt; the rest is read by the tool."""
DOCUMENT_PAGES = 10
"""A PDF of at most so many pages goes to an endpoint that reads PDFs as it is."""
DOCUMENT_BYTES = 5_000_000
PAGE_TOKENS = 2_500
"""Of a page that is sent as it is: its text and its picture."""
PIXELS_PER_TOKEN = 750
MARK_TOKENS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """A file's kind and its text, under the names of `Attachment`'s fields; `picture` is an image's copy."""

    kind: AttachmentKind
    media_type: str
    text: str = ""
    whole: bool = True
    pages: int = 0
    width: int = 0
    height: int = 0
    shown_type: str = ""
    picture: bytes = b""

    @property
    def tokens(self) -> int:
        """The most that it takes in a request."""
        if self.kind == AttachmentKind.IMAGE:
            return MARK_TOKENS + -(-self.width * self.height // PIXELS_PER_TOKEN)
        text = estimate_tokens(self.text[:INLINE_CHARS])
        sent = self.pages * PAGE_TOKENS if 0 < self.pages <= DOCUMENT_PAGES else 0
        return MARK_TOKENS + max(text, sent)


def inspect(name: str, body: bytes) -> Inspected:
    """Reads a file. Takes up to half a minute of a hostile one, in another process; call it outside of transactions.

    InvalidInput (`empty_file`, `wrong_kind`, `unknown_kind`, `locked_pdf`, `damaged_file`) and TooLarge (`too_many_pixels`), each with a
    sentence that names the file.
    """
    from apps.agent.web.fetching import Kind  # which loads an HTTP client
    from apps.agent.web.reader.parent import read_file

    if not body.strip():
        raise _empty(name)
    kind, media_type = kind_of(name, body)
    found = async_to_sync(read_file)(Kind(kind.value), body)
    if found.locked:
        raise InvalidInput(
            f"“{name}” needs a password. Save a copy without one and attach that.",
            code="locked_pdf",
            field="file",
        )
    if found.pixels:
        raise TooLarge(
            f"“{name}” has {found.pixels / 1_000_000:,.0f} million pixels; at most 50 million can be read. Make it smaller.",
            code="too_many_pixels",
            field="file",
        )
    if kind == AttachmentKind.IMAGE:
        if not found.picture:
            raise _damaged(name)
        return Inspected(
            kind=kind,
            media_type=media_type,
            width=found.width,
            height=found.height,
            shown_type=found.picture_type,
            picture=found.picture,
        )
    if not found.whole and not found.texts and not found.of:
        raise _damaged(name)
    text = storable(found.text)
    if kind == AttachmentKind.TEXT and not text:
        raise _empty(name)
    pages = found.of if kind == AttachmentKind.PDF else 0
    whole = found.whole and found.pages == found.of
    return Inspected(kind=kind, media_type=media_type, text=text, whole=whole, pages=pages)


def _empty(name: str) -> InvalidInput:
    return InvalidInput(f"“{name}” is empty.", code="empty_file", field="file")


def _damaged(name: str) -> InvalidInput:
    return InvalidInput(
        f"“{name}” could not be read: it is damaged, or too large or entangled.",
        code="damaged_file",
        field="file",
    )
