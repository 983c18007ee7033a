"""The text of a PDF, page by page."""

import io
import logging
from collections.abc import Iterator
from typing import Any

from pypdf import PdfReader

MAX_PAGES = 500

logging.getLogger("pypdf").setLevel(logging.CRITICAL)


def read(body: bytes, *, charset: str, url: str) -> Iterator[dict[str, Any]]:
    """`{"title"}`, then `{"text", "page", "of"}` for each of the first 500 pages, as they are done; a page whose
    text cannot be got at has an empty one. `{"locked": true}` alone for a document with a password."""
    document = PdfReader(io.BytesIO(body))
    if document.is_encrypted and not document.decrypt(""):
        yield {"locked": True}
        return
    yield {"title": _title(document)}
    of = len(document.pages)
    for number in range(min(of, MAX_PAGES)):
        yield {"text": _page(document, number), "page": number + 1, "of": of}


def _title(document: PdfReader) -> str:
    try:
        return " ".join(str(document.metadata.title or "").split())[:300] if document.metadata else ""
    except Exception:  # noqa: BLE001  a title is not worth the document
        return ""


def _page(document: PdfReader, number: int) -> str:
    try:
        text = document.pages[number].extract_text()
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  pypdf raises whatever a broken page leads to; the others can be read
        return ""
    return "\n".join(line.rstrip() for line in text.splitlines())
