"""The server's side of the reading process: hands it a document, gathers its answer, never waits for ever."""

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
import threading
from base64 import b64decode
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from apps.agent.tools.base import Emit, ToolFailure
from apps.agent.web.fetching import Kind, Page

logger = logging.getLogger(__name__)

ANSWER_SECONDS = 40.0
"""Longer than a copy of the process lives, for the wait until one is free."""
LINE_BYTES = 16_000_000
UNREADABLE = "The document could not be read: it is damaged, or too large or entangled. Try another page on the subject."
CPU_SECONDS = 20  # for one document, enforced by the kernel
MEMORY_BYTES = 1_000_000_000  # likewise
START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from apps.agent.web.reader.child import serve; "
    "serve(*map(int, sys.argv[2:]))"
)


@dataclass(slots=True)
class Document:
    """A document as text. `pages` of `of` were read, for a PDF; `whole` is False where reading broke off."""

    title: str = ""
    texts: list[str] = field(default_factory=list)
    pages: int = 0
    of: int = 0
    locked: bool = False
    whole: bool = False
    picture: bytes = (
        b""  # of an image, as it is shown, with its type and size; `pixels` where there are too many
    )
    picture_type: str = ""
    width: int = 0
    height: int = 0
    pixels: int = 0

    def take(self, entry: dict[str, Any]) -> None:
        """One line of the answer."""
        self.title = str(entry.get("title", self.title))
        self.locked = bool(entry.get("locked", self.locked))
        self.pages, self.of = int(entry.get("page", self.pages)), int(entry.get("of", self.of))
        self.whole = bool(entry.get("end", self.whole))
        self.pixels = int(entry.get("pixels", self.pixels))
        if "picture" in entry:
            self.picture, self.picture_type = b64decode(entry["picture"]), str(entry["type"])
            self.width, self.height = int(entry["width"]), int(entry["height"])
        if text := str(entry.get("text", "")).strip():
            self.texts.append(f"[Page {self.pages}]\n{text}" if self.of else text)

    @property
    def text(self) -> str:
        """All of it."""
        return "\n\n".join(self.texts)


async def read_page(page: Page, *, progress: Emit) -> Document:
    """The text of what was fetched. What was read before a time or memory limit is kept; raises `ToolFailure` where
    there is nothing."""
    document = await _gathered(page, progress)
    if document.locked:
        raise ToolFailure(
            "The PDF needs a password. Look for an open copy, or ask the user for its text."
        )
    if not document.whole and not document.texts:
        raise ToolFailure(UNREADABLE)
    return document


async def read_file(kind: Kind, body: bytes) -> Document:
    """The part of a file read before a time or memory limit: text, or an image. One that cannot be read at all has neither."""
    return await _gathered(Page("", kind, "", body, cut=False))


async def _gathered(page: Page, progress: Emit | None = None) -> Document:
    document = Document()
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            async for entry in _answer(page):
                document.take(entry)
                if progress and document.of and document.pages % 10 in {0, 1}:
                    await progress({"status": "extracting", "pages": document.pages, "of": document.of})
    except (TimeoutError, OSError, ValueError) as error:
        logger.warning("reading a %s broke off: %s", page.kind, type(error).__name__)
    return document


async def _answer(page: Page) -> AsyncIterator[dict[str, Any]]:
    ours = reader.job()
    lines, writer = await asyncio.open_unix_connection(sock=ours, limit=LINE_BYTES)
    try:
        head = {"kind": page.kind, "charset": page.charset, "url": page.url, "bytes": len(page.body)}
        writer.write(json.dumps(head).encode() + b"\n" + page.body)
        await writer.drain()
        while line := await lines.readline():
            yield json.loads(line)
    finally:
        writer.transport.abort()


class _Reader:
    """The one reading process of this server process; started at first use, and again when it has died."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def stop(self) -> None:
        """Ends the process; the next document starts another."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def job(self) -> socket.socket:
        """A socket to a copy of the process that waits for a document."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                with self._lock:
                    control = self._control
                    if control is None or self._process is None or self._process.poll() is not None:
                        control = self._start()
                    socket.send_fds(control, [b"j"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        ours.setblocking(False)
        return ours

    def _start(self) -> socket.socket:
        if self._control is not None:
            self._control.close()
        self._control, theirs = socket.socketpair()
        numbers = (theirs.fileno(), CPU_SECONDS, MEMORY_BYTES)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  our own interpreter and code
                [sys.executable, "-I", "-c", START, str(settings.BASE_DIR), *map(str, numbers)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": os.defpath, "LANG": "C.UTF-8"},
                cwd="/",
                start_new_session=True,
            )
        return self._control


reader = _Reader()
