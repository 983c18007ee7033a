"""Kinds of files that can stand beside a message, recognised by their bytes, and names as they are kept."""

import codecs
import re
import unicodedata
from pathlib import PurePosixPath

from apps.chat.models import AttachmentKind
from apps.core.errors import InvalidInput

NAME_CHARS = 120
UNNAMED = "file"
WANTED = "Text, PDF and images (PNG, JPEG, GIF, WebP) can be attached."
_IMAGES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
)
_SUFFIXES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".pdf": "application/pdf",
}
_TEXTS = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".csv": "text/csv",
    ".tsv": "text/tab-separated-values",
    ".json": "application/json",
}
_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_JOINERS = {"\u200c", "\u200d"}  # of Persian words and of emoji; they turn nothing around
_LOOKED_AT = 65_536
_BINARY_SHARE = 0.01
PDF_WITHIN = 1024  # readers of PDF take the mark that far from the beginning


def clean_name(value: object) -> str:
    """The last part of a path, on one line, without signs that do not show or turn the direction of what follows; at most 120
    characters with the ending kept."""
    text = value if isinstance(value, str) else ""
    last = re.split(r"[/\\]", text.rstrip("/\\"))[-1]
    shown = "".join(
        " " if unicodedata.category(sign) in {"Cc", "Zl", "Zp"} else sign
        for sign in unicodedata.normalize("NFC", last)
        if sign in _JOINERS or unicodedata.category(sign) not in {"Cf", "Cs", "Co"}
    )
    name = " ".join(shown.split()).lstrip(".") or UNNAMED
    if len(name) > NAME_CHARS:
        suffix = PurePosixPath(name).suffix[:12]
        name = name[: NAME_CHARS - len(suffix) - 1].rstrip() + "…" + suffix
    return name


def kind_of(name: str, body: bytes) -> tuple[AttachmentKind, str]:
    """The kind of a file and its media type. InvalidInput, with a sentence to act on, for what is none of them or is not what
    its name says."""
    suffix = PurePosixPath(name).suffix.lower()
    image = next((kind for mark, kind in _IMAGES if mark.match(body)), "")
    is_pdf = b"%PDF-" in body[:PDF_WITHIN]
    if is_pdf and suffix != ".pdf" and not body.startswith(b"%PDF-"):  # a text may speak of PDFs
        is_pdf = not _is_text(body)
    claimed = _SUFFIXES.get(suffix, "")
    if claimed and claimed != (image or ("application/pdf" if is_pdf else "")):
        if claimed.startswith("image/") and image:
            return AttachmentKind.IMAGE, image  # a JPEG that is called PNG is shown all the same
        raise InvalidInput(
            f"“{name}” is not what its name says: it is no {suffix[1:].upper()}. It may be damaged.",
            code="wrong_kind",
            field="file",
        )
    if image:
        return AttachmentKind.IMAGE, image
    if is_pdf:
        return AttachmentKind.PDF, "application/pdf"
    if not _is_text(body):
        raise InvalidInput(
            f"“{name}” cannot be read here. {WANTED} Save it as PDF, or paste its text.",
            code="unknown_kind",
            field="file",
        )
    return AttachmentKind.TEXT, _TEXTS.get(suffix, "text/plain")


def _is_text(body: bytes) -> bool:
    if body.startswith(_MARKS):
        return True
    head = body[:_LOOKED_AT]
    return b"\x00" not in body and len(_BINARY.findall(head)) <= len(head) * _BINARY_SHARE
