"""Fetches one page, of a kind that can be read: each step checked, counted and timed."""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum

import httpx

from apps.agent.tools.base import Emit, ToolFailure
from apps.agent.web.addresses import checked_url, next_url
from apps.agent.web.http import ACCEPTED, checked_client, decoded
from apps.core.http.addresses import AddressRefused, NameNotFound


class Kind(StrEnum):
    """How a document is turned into text; `OTHER` is not. An `IMAGE` is made small and clean: of files that a user brings."""

    HTML = "html"
    PDF = "pdf"
    TEXT = "text"
    IMAGE = "image"
    OTHER = "other"


READ_BYTES = {Kind.HTML: 5_000_000, Kind.TEXT: 5_000_000, Kind.PDF: 20_000_000, Kind.OTHER: 65_536}
"""Decompressed. Of a longer HTML or text its beginning is read; half a PDF cannot be."""

_HTML = {"text/html", "application/xhtml+xml"}
_PDF = {"application/pdf", "application/x-pdf"}
_TEXT = {
    "application/json",
    "application/xml",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
}
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


FETCH_SECONDS = 30.0
"""For the whole: all redirects and the body, however slowly it drips."""
STEP_SECONDS = 10.0
MAX_REDIRECTS = 5
REDIRECTS = {301, 302, 303, 307, 308}
PROGRESS_SECONDS = 0.25
ACCEPT = "text/html,application/xhtml+xml,application/pdf,text/*;q=0.9,application/json;q=0.9,*/*;q=0.5"


@dataclass(frozen=True, slots=True)
class Page:
    """A body as it was sent, decompressed. `cut`: there was more than `kind`'s limit, this is its beginning."""

    url: str
    kind: Kind
    charset: str
    body: bytes
    cut: bool


async def fetch_page(url: str, *, progress: Emit) -> Page:
    """The page at `url` after at most five redirects. Raises `ToolFailure` and `AddressRefused`, untrusted once a page has said
    where to go on."""
    moved = False
    try:
        async with asyncio.timeout(FETCH_SECONDS):
            at = checked_url(url)
            for _ in range(MAX_REDIRECTS + 1):
                await progress({"status": "fetching", "url": str(at)})
                # A client per step: neither cookies nor connections are carried from one host to the next.
                async with (
                    checked_client(seconds=STEP_SECONDS) as client,
                    client.stream(
                        "GET", at, headers={"Accept": ACCEPT, "Accept-Encoding": ACCEPTED}
                    ) as response,
                ):
                    if response.status_code not in REDIRECTS:
                        return await _page(response, progress)
                    moved = True
                    at = next_url(at, response.headers.get("location", ""))
            raise ToolFailure("The page redirects again and again. Try another one.")
    except TimeoutError as error:
        raise ToolFailure(
            f"The page did not arrive within {FETCH_SECONDS:g} seconds. Try another one."
        ) from error
    except NameNotFound as error:
        message = f"{error.message} Check the address, or search for the page."
        raise ToolFailure(message, untrusted=moved) from error
    except (ToolFailure, AddressRefused) as error:
        error.untrusted = error.untrusted or moved
        raise
    except httpx.TimeoutException as error:
        raise ToolFailure("The server does not answer. Try another page.") from error
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
        # The reason may repeat what the server sent where an answer was expected.
        reason = str(error)[:200] or type(error).__name__
        raise ToolFailure(
            f"The page could not be fetched ({reason}). Try another one.", untrusted=True
        ) from error


async def _page(response: httpx.Response, progress: Emit) -> Page:
    if response.status_code != httpx.codes.OK:
        raise ToolFailure(_refused(response.status_code))
    declared = declared_kind(response.headers.get("content-type", ""))
    if declared:
        require_readable(declared, response.headers.get("content-length", ""))
    body, cut = await _body(response, READ_BYTES[declared or Kind.PDF], progress)
    kind = declared or kind_of(body)
    require_readable(kind, str(len(body) + cut))
    if len(body) > READ_BYTES[kind]:
        body, cut = body[: READ_BYTES[kind]], True
    return Page(str(response.url), kind, response.charset_encoding or "", body, cut)


async def _body(response: httpx.Response, limit: int, progress: Emit) -> tuple[bytes, bool]:
    """At most `limit` decompressed bytes, and whether there were more."""
    body = bytearray()
    reported = time.monotonic()
    encoding = response.headers.get("content-encoding", "")
    async for piece in decoded(_counted(response.aiter_raw(), limit), encoding):
        body += piece
        if len(body) > limit:
            return bytes(body[:limit]), True
        if time.monotonic() - reported > PROGRESS_SECONDS:
            reported = time.monotonic()
            await progress({"status": "reading", "bytes": len(body)})
    await progress({"status": "reading", "bytes": len(body)})
    return bytes(body), False


async def _counted(raw: AsyncIterator[bytes], limit: int) -> AsyncIterator[bytes]:
    """Yields the body to a little beyond `limit`: even one that decompresses to nothing ends."""
    left = limit + 1
    async for piece in raw:
        yield piece[:left]
        left -= len(piece)
        if left <= 0:
            return


def _refused(status: int) -> str:
    if status in {401, 402, 403, 407, 451}:
        return f"The site does not let programs read this page (HTTP {status}). Try another page, or ask the user for its text."
    if status in {404, 410}:
        return f"There is no such page (HTTP {status}). Check the address, or search for it."
    if status == 429 or status >= 500:
        return f"The site cannot answer right now (HTTP {status}). Try another page, or this one later."
    return f"The site answered with HTTP {status} instead of a page. Try another one."
