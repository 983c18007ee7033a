"""A sandboxed job's output, as it comes: kept up to a limit, told in lines, the marked answer taken out."""

import json
import time
from collections.abc import Callable
from typing import Any

from ..base import Limits, Progress
from ..output import end_of, storable

TELL_SECONDS = 0.1
"""Between two reports of output: a tool may print faster than anybody reads."""
TOLD_CHARS = 4_000
ESCAPED, SLACK = 6, 65_536
"""An answer is JSON in ASCII: a letter may take six signs; and a little around it."""


class Stream:
    """One of the two: what is kept of it, up to the limit, and what has not been told yet.

    `on_flood` is called once, where more is written than any tool has reason to; what comes after that is dropped.
    """

    def __init__(
        self, name: str, limits: Limits, progress: Progress | None, on_flood: Callable[[], None]
    ) -> None:
        self.name = name
        self.on_flood = on_flood
        self.limits = limits
        self.progress = progress
        self.size = 0
        self._kept: list[str] = []
        self._kept_size = 0
        self._untold = ""
        self._told = 0.0

    @property
    def text(self) -> str:
        """Kept text, and how much was cut."""
        text = storable("".join(self._kept))
        missing = self.size - self._kept_size
        return f"{text}\n… {missing:,} more bytes were not kept." if missing else text

    async def take(self, text: str) -> None:
        """Adds what came."""
        if self.size > self.limits.flood_bytes:
            return
        size = len(text.encode("utf-8", "surrogatepass"))
        self.size += size
        room = self.limits.stdout_bytes - self._kept_size
        if room > 0:
            fits = text if size <= room else text.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
            self._kept.append(fits)
            self._kept_size += min(size, room)
        if self.size > self.limits.flood_bytes:
            self.on_flood()
            return
        self._untold = end_of(self._untold + text, TOLD_CHARS)
        if "\n" in self._untold and time.monotonic() - self._told > TELL_SECONDS:
            lines, _, self._untold = self._untold.rpartition("\n")
            await self._tell(lines)

    async def finish(self) -> None:
        """Tells the rest."""
        if self._untold.strip():
            await self._tell(self._untold)
        self._untold = ""

    async def _tell(self, text: str) -> None:
        self._told = time.monotonic()
        if self.progress and text.strip():
            await self.progress({"status": "output", "stream": self.name, "text": storable(text.strip("\n"))})


class MarkedStream:
    """Standard output of a capability: what stands behind the mark is its answer, never its output.

    The mark is random, so nothing that is printed, however it looks, is taken for one by accident. A tool that searches its
    memory for it answers in its own words, which is all that an answer ever is.
    """

    def __init__(self, stream: Stream, mark: str) -> None:
        self.stream = stream
        self.mark = f"{mark} "
        self._held = ""
        self._answer: list[str] | None = None
        self._left = ESCAPED * stream.limits.result_bytes + SLACK

    async def take(self, text: str) -> None:
        """Adds what came."""
        if self._answer is not None:
            self._keep(text)
            return
        self._held += text
        before, mark, after = self._held.partition(self.mark)
        if mark:
            self._held, self._answer = "", []
            self._keep(after)
            await self.stream.take(before)
            return
        # A mark may come in pieces: what could be its beginning waits for the rest.
        waits = _end_that_begins(self._held, self.mark)
        free, self._held = self._held[: len(self._held) - waits], self._held[len(self._held) - waits :]
        if free:
            await self.stream.take(free)

    def _keep(self, text: str) -> None:
        if self._answer is None or self._left < 0:
            return
        self._left -= len(text)
        if self._left < 0:
            self._answer = []
            self.stream.on_flood()
        else:
            self._answer.append(text)

    async def finish(self) -> dict[str, Any] | None:
        """The answer, None where there is none."""
        if self._held:
            await self.stream.take(self._held)
        await self.stream.finish()
        try:
            found = json.loads("".join(self._answer or []))
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None


def _end_that_begins(text: str, mark: str) -> int:
    """How many characters at the end of a text are the beginning of the mark."""
    sizes = range(min(len(text), len(mark) - 1), 0, -1)
    return next((size for size in sizes if text.endswith(mark[:size])), 0)
