"""A tool's output: the beginning is kept, all of it is counted, and its lines are told as they come."""

import asyncio
import codecs
import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from .base import Limits, Progress
from .bubblewrap.inside.answers import end_of as end_of

logger = logging.getLogger(__name__)

TELL_EVERY_SECONDS = 0.1
TOLD_CHARS = 4000
"""At most so much of what was printed within a tenth of a second is told; the newest."""

_UNSTORABLE = str.maketrans({"\x00": "�", **{chr(code): "�" for code in range(0xD800, 0xE000)}})


def storable(text: str) -> str:
    """Without NUL and lone surrogates, which databases refuse."""
    return text.translate(_UNSTORABLE) if "\x00" in text or not _encodable(text) else text


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class Captured:
    """One stream during one call."""

    def __init__(self, name: str, keep: int) -> None:
        self.name = name
        self.total = 0
        self._keep = keep
        self._kept = bytearray()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._untold = ""

    def feed(self, data: bytes) -> None:
        room = self._keep - len(self._kept)
        self._kept += data[: max(0, room)]
        self.total += len(data)
        if room > 0:
            self._untold += self._decoder.decode(data[:room])

    def text(self) -> str:
        text = storable(self._kept.decode("utf-8", "replace"))
        missing = self.total - len(self._kept)
        return f"{text}\n… {missing:,} more bytes were not kept." if missing else text

    def lines(self, *, all_of_it: bool) -> str:
        """Text not told yet: whole lines, at the end the rest too."""
        cut = len(self._untold) if all_of_it else self._untold.rfind("\n") + 1
        told, self._untold = self._untold[:cut], self._untold[cut:]
        return storable(end_of(told, TOLD_CHARS))


class Output:
    """Standard output and error of one call. Lines go to `progress` while the call runs, the last before it returns."""

    def __init__(self, limits: Limits, progress: Progress | None) -> None:
        self.stdout = Captured("stdout", limits.stdout_bytes)
        self.stderr = Captured("stderr", limits.stdout_bytes)
        self._progress = progress
        self._teller: asyncio.Task[None] | None = None

    @property
    def total(self) -> int:
        return self.stdout.total + self.stderr.total

    def start(self) -> None:
        if self._progress is not None:
            self._teller = asyncio.create_task(self._tell_now_and_then())

    async def finish(self) -> None:
        if self._teller is not None:
            self._teller.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._teller
            self._teller = None
            await self._tell(all_of_it=True)

    def abandon(self) -> None:
        if self._teller is not None:
            self._teller.cancel()

    async def _tell_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(TELL_EVERY_SECONDS)
            await self._tell(all_of_it=False)

    async def _tell(self, *, all_of_it: bool) -> None:
        for event in list(self._events(all_of_it)):
            await tell(self._progress, event)

    def _events(self, all_of_it: bool) -> Iterator[dict[str, Any]]:
        for stream in (self.stdout, self.stderr):
            if text := stream.lines(all_of_it=all_of_it):
                yield {"status": "output", "stream": stream.name, "text": text}


async def tell(progress: Progress | None, event: dict[str, Any]) -> None:
    """A listener that fails does not end the run."""
    if progress is None:
        return
    try:
        await progress(event)
    except Exception:
        logger.exception("a listener to a tool's progress failed")
