"""One watcher of a conversation: the frames that wait for it."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.chat.stream.events import HTML, TEXT, LoggedEvent

QUEUE_FRAMES = 5000
"""A watcher that lags further behind loses its place and gets a snapshot instead."""
OLDER_BLOCKS = 20  # waiting frames among which a block's older self is looked for


@dataclass(slots=True)
class _Waiting:
    frame: dict[str, Any]
    texts: list[str]  # Of a frame of text: its own, and that of those which joined it.

    def joins(self, later: "_Waiting") -> bool:
        """Whether the later frame has become part of this one, which then has its number."""
        if not self.texts or not later.texts or self.frame["turn"] != later.frame["turn"]:
            return False
        self.frame = later.frame
        self.texts += later.texts
        return True


@dataclass(eq=False, slots=True)
class Subscription:
    """One watcher's queue of frames. It buffers until `begin` says what the watcher knows already."""

    conversation_id: UUID
    html: bool = field(kw_only=True)  # a page, which shows the text as HTML
    lagged: bool = False
    before: Sequence[LoggedEvent] = ()  # passed on before it joined, when the rows might not have them
    needs: int = 0  # what was passed on up to here it gets from the rows alone
    _after: int | None = None
    _early: list[LoggedEvent] = field(default_factory=list)
    _queue: deque[_Waiting] = field(default_factory=deque)
    _came: asyncio.Event = field(default_factory=asyncio.Event)

    def put(self, event: LoggedEvent) -> None:
        if event.type == HTML and not self.html:
            return
        if self._after is None:
            self._early.append(event)
        elif event.type == HTML or event.seq > self._after:
            self.put_frame(event.frame(self.conversation_id))

    def put_frame(self, frame: dict[str, Any]) -> None:
        """Queues a frame. While the watcher has not taken the one before, texts become one, and a block takes the place of its
        older self."""
        waiting = _Waiting(frame, [frame["text"]] if frame["type"] == TEXT else [])
        if self._queue:
            if frame["type"] == HTML:
                self._drop_older(frame)
            elif self._queue[-1].joins(waiting):
                return
        if len(self._queue) >= QUEUE_FRAMES:
            self.lagged = True
        else:
            self._queue.append(waiting)
        self._came.set()

    def _drop_older(self, frame: dict[str, Any]) -> None:
        newest = len(self._queue) - 1
        for place in range(newest, max(-1, newest - OLDER_BLOCKS), -1):
            older = self._queue[place].frame
            if older["type"] == HTML and (older["turn"], older["block"]) == (
                frame["turn"],
                frame["block"],
            ):
                del self._queue[place]
                if 0 < place < len(self._queue) and self._queue[place - 1].joins(self._queue[place]):
                    del self._queue[place]
                return

    def begin(self, frames: Sequence[dict[str, Any]], after: int) -> None:
        """Sends `frames` as they are, then everything above `after`, what has come meanwhile included."""
        self._queue.extend(
            _Waiting(frame, [frame["text"]] if frame["type"] == TEXT else []) for frame in frames
        )
        self._came.set()
        self._after, self.before = after, ()
        early, self._early = self._early, []
        for event in early:
            if event.seq > after:
                self.put(event)

    async def next(self) -> dict[str, Any]:
        """The next frame; waits for it."""
        while not self._queue:
            self._came.clear()
            await self._came.wait()
        waiting = self._queue.popleft()
        return waiting.frame | {"text": "".join(waiting.texts)} if waiting.texts else waiting.frame
