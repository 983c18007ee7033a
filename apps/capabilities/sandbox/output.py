"""A tool's output: the beginning is kept, all of it is counted, and its lines are emitted as they come."""

import asyncio
import codecs
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from apps.core.text import storable

from .base import ErrorCode, Limits, Progress, RunError
from .bubblewrap.inside.answers import end_of

logger = logging.getLogger(__name__)

EMIT_EVERY_SECONDS = 0.1
EMITTED_CHARS = 4000
"""At most so much of what was printed within a tenth of a second is emitted; the newest."""


@dataclass(slots=True)
class Captured:
    """One stream during one call."""

    keep: int  # bytes
    total: int = 0
    _kept: bytearray = field(default_factory=bytearray)
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=partial(codecs.getincrementaldecoder("utf-8"), "replace")
    )
    _pending: str = ""

    def feed(self, data: bytes) -> None:
        room = self.keep - len(self._kept)
        self.total += len(data)
        if room > 0:
            self._kept += data[:room]
            self._pending += self._decoder.decode(data[:room])

    def text(self) -> str:
        text: str = storable(self._kept.decode("utf-8", "replace"))
        missing = self.total - len(self._kept)
        return f"{text}\n… {missing:,} more bytes were not kept." if missing else text

    def lines(self, *, all_of_it: bool) -> str:
        """Text not emitted yet: whole lines, at the end the rest too."""
        cut = len(self._pending) if all_of_it else self._pending.rfind("\n") + 1
        text, self._pending = self._pending[:cut], self._pending[cut:]
        return str(storable(end_of(text, EMITTED_CHARS)))


class Output:
    """Standard output and error of one call. `on_flood` is called where more is written than any tool has reason to, again
    with each piece that comes after."""

    def __init__(
        self, limits: Limits, progress: Progress | None, on_flood: Callable[[RunError], None]
    ) -> None:
        self.error: RunError | None = None  # why the call did not end as it should
        self._streams = {name: Captured(limits.stdout_bytes) for name in ("stdout", "stderr")}
        self._flood_bytes = limits.flood_bytes
        self._progress = progress
        self._on_flood = on_flood
        self._began = time.monotonic()

    def feed(self, stream: str, data: bytes) -> None:
        self._streams[stream].feed(data)
        if sum(captured.total for captured in self._streams.values()) > self._flood_bytes:
            self.flooded()

    def flooded(self) -> None:
        message = f"It printed more than {self._flood_bytes // 1_000_000} MB."
        self._on_flood(RunError(ErrorCode.TOO_MUCH_OUTPUT, message))

    def report(self) -> dict[str, Any]:
        """Returns what every result says: both streams' text and how long the call took."""
        texts = {name: captured.text() for name, captured in self._streams.items()}
        return {**texts, "duration_ms": round((time.monotonic() - self._began) * 1000)}

    @asynccontextmanager
    async def emitting(self) -> AsyncIterator[None]:
        """Lines go to `progress` while the block runs, the last of them at its end, where nothing was raised."""
        if self._progress is None:
            yield
            return
        emitter = asyncio.create_task(self._emit_now_and_then())
        try:
            yield
        finally:
            emitter.cancel()
        await asyncio.wait([emitter])
        await self._emit(all_of_it=True)

    async def _emit_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(EMIT_EVERY_SECONDS)
            await self._emit(all_of_it=False)

    async def _emit(self, *, all_of_it: bool) -> None:
        for name, captured in self._streams.items():
            if text := captured.lines(all_of_it=all_of_it):
                await emit(self._progress, {"status": "output", "stream": name, "text": text})


async def emit(progress: Progress | None, event: dict[str, Any]) -> None:
    """A listener that fails does not end the run."""
    if progress is None:
        return
    try:
        await progress(event)
    except Exception:
        logger.exception("a listener to a tool's progress failed")
