"""Kinds of document that are read, their largest sizes, and how they are told apart."""

import re
from enum import StrEnum

from apps.agent.tools.base import ToolFailure


class Kind(StrEnum):
    """How a document is turned into text; `OTHER` is not."""

    HTML = "html"
    PDF = "pdf"
    TEXT = "text"
    OTHER = "other"


READ_BYTES = {Kind.HTML: 5_000_000, Kind.TEXT: 5_000_000, Kind.PDF: 20_000_000, Kind.OTHER: 65_536}
"""Decompressed. Of a longer HTML or text its beginning is read; half a PDF cannot be."""

_HTML = {"text/html", "application/xhtml+xml"}
_PDF = {"application/pdf", "application/x-pdf"}
_TEXT = {"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml"}
_UNKNOWN = {"", "application/octet-stream", "binary/octet-stream", "application/x-download"}


def declared_kind(content_type: str) -> Kind | None:
    """Kind by the Content-Type, None if it tells none."""
    mime = content_type.partition(";")[0].strip().lower()
    if mime in _UNKNOWN:
        return None
    if mime in _HTML:
        return Kind.HTML
    if mime in _PDF:
        return Kind.PDF
    if mime.startswith("text/") or mime in _TEXT or mime.endswith(("+json", "+xml", "+yaml")):
        return Kind.OTHER if mime == "text/event-stream" or mime.startswith("image/") else Kind.TEXT
    return Kind.OTHER


def require_readable(kind: Kind, length: str) -> None:
    """Raises `ToolFailure` for what is no document, and for a PDF that `length` (bytes, if known) says is too large."""
    if kind == Kind.OTHER:
        raise ToolFailure(
            "This is not a page, a PDF or text, so it cannot be read here. Look for a page that describes it."
        )
    if kind == Kind.PDF and length.isascii() and length.isdigit() and int(length) > READ_BYTES[Kind.PDF]:
        raise ToolFailure(
            f"The PDF is larger than {READ_BYTES[Kind.PDF] // 1_000_000} MB. Look for a shorter one or a page about it."
        )


def kind_of(body: bytes) -> Kind:
    """Guesses the kind of an undeclared document."""
    head = body[:1024].lstrip()
    if head.startswith(b"%PDF-"):
        return Kind.PDF
    if re.match(rb"(<!doctype html|<html|<head|<body|<title)", head, re.IGNORECASE):
        return Kind.HTML
    if not head or b"\x00" in body[:4096]:
        return Kind.OTHER
    try:
        body[:4096].decode("utf-8")
    except UnicodeDecodeError as error:
        return Kind.TEXT if error.start > 4090 else Kind.OTHER
    return Kind.TEXT
