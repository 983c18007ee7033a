"""Pieces of a model's text that come faster than they are worked off become fewer and longer ones."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from apps.agent.client import ModelEvent, TextChunk

TURN_SECONDS = 0.02
"""So long the stream is read on before others get their turn, where it has more without waiting."""


async def merged(events: AsyncGenerator[ModelEvent, None]) -> AsyncGenerator[ModelEvent, None]:
    """The same events, read ahead: text that came while the reader was busy is one piece. Raises what `events` raises."""
    waiting: list[ModelEvent] = []
    texts: list[str] = []  # The newest of what waits, where that is text.
    came = asyncio.Event()

    def text_ends() -> None:
        if texts:
            waiting.append(TextChunk("".join(texts)))
            texts.clear()

    async def read() -> None:
        began = time.monotonic()
        async with aclosing(events):
            async for event in events:
                if isinstance(event, TextChunk):
                    texts.append(event.text)
                else:
                    text_ends()
                    waiting.append(event)
                came.set()
                if time.monotonic() - began > TURN_SECONDS:
                    await asyncio.sleep(0)
                    began = time.monotonic()

    reading = asyncio.create_task(read())
    reading.add_done_callback(lambda _: came.set())
    try:
        while True:
            await came.wait()
            came.clear()
            text_ends()
            while waiting:
                yield waiting.pop(0)
            if reading.done() and not texts:
                reading.result()
                return
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
