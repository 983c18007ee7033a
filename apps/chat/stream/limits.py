"""Limits of sockets in a server process, judged before a frame is parsed. IZZY_THROTTLE=off lifts them."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from channels.security.websocket import WebsocketDenier
from django.conf import settings

from apps.core.errors import Throttled
from apps.core.http.clients import Bucket

FRAMES_PER_SECOND = 10.0
FRAMES_BURST = 60
FRAMES_REFUSED = 600  # frames in a row beyond the allowance that end the socket
CHARS_WAITING = 2_000_000
"""Of frames that wait for their turn."""
SOCKETS_PER_USER = 30
SOCKETS_PER_ADDRESS = 200
CLOSE_FLOODING = 4429
Scope = dict[str, Any]
ASGIApp = Any
_REFUSAL = json.dumps(
    {"type": "error", **Throttled("Too many frames. Wait a moment.", retry_after=1).to_json()}
)


class SocketsAtOnce:
    """An ASGI application for at most `most` sockets of one `key` in this process; another gets 403 in its handshake."""

    def __init__(self, application: ASGIApp, key: Callable[[Scope], object], most: int) -> None:
        self._application = application
        self._key = key
        self._most = most
        self._open: Counter[object] = Counter()

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        key = self._key(scope)
        if settings.IZZY_THROTTLE and self._open[key] >= self._most:
            await WebsocketDenier()(scope, receive, send)
            return
        self._open[key] += 1
        try:
            await self._application(scope, receive, send)
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]


class FrameLimit:
    """An ASGI application that takes a socket's frames as they come, however long the consumer is busy: some wait for
    it, those beyond the allowance are refused, and a client that goes on all the same is cut off."""

    def __init__(self, application: ASGIApp) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        gate = _Gate(receive, send)
        reading = asyncio.create_task(gate.read())
        try:
            await self._application(scope, gate.next, send)
        finally:
            reading.cancel()


class _Gate:
    def __init__(self, receive: Any, send: Any) -> None:
        self._receive, self._send = receive, send
        self._allowance = Bucket(FRAMES_BURST, FRAMES_PER_SECOND)
        self._waiting: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._chars = 0
        self._refused = 0

    async def next(self) -> dict[str, Any]:
        """The next message for the consumer."""
        message = await self._waiting.get()
        self._chars -= _size(message)
        return message

    async def read(self) -> None:
        while True:
            message = await self._receive()
            if message["type"] != "websocket.receive" or self._fits(message):
                self._chars += _size(message)
                self._waiting.put_nowait(message)
                continue
            await self._send({"type": "websocket.send", "text": _REFUSAL})
            self._refused += 1
            if self._refused >= FRAMES_REFUSED:
                break
        await self._send({"type": "websocket.close", "code": CLOSE_FLOODING})
        while not self._waiting.empty():  # What waits is not worked off any more.
            self._waiting.get_nowait()
        self._waiting.put_nowait({"type": "websocket.disconnect", "code": CLOSE_FLOODING})

    def _fits(self, message: dict[str, Any]) -> bool:
        if not settings.IZZY_THROTTLE:
            return True
        crowded = self._waiting.qsize() >= FRAMES_BURST or self._chars + _size(message) > CHARS_WAITING
        if (crowded and not self._waiting.empty()) or not self._allowance.take():
            return False
        self._refused = 0
        return True


def _size(message: dict[str, Any]) -> int:
    return len(message.get("text") or message.get("bytes") or "")
