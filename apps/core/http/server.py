"""uvicorn as Izzy runs it: what a client may send before any of our code sees it, and how a process ends in order."""

import asyncio
import json
import logging
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from os import _exit
from typing import Any

import uvicorn
from django.conf import settings
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from apps.core.errors import TooLarge
from apps.core.http.clients import Bucket
from apps.core.http.edge import ABORT, BACKLOG, WRITABLE, body_limit

logger = logging.getLogger(__name__)

PATIENCE = 8
"""A body over its limit is read and thrown away, so that its sender gets to read the answer; one that is longer by more than so
many times IZZY_UPLOAD_LIMIT is cut off."""
HEAD_BYTES = 64 * 1024
"""Of a request line and its headers. The parser would take any number."""
KEEP_ALIVE_SECONDS = 150
"""So long a connection may lie idle: longer than proxies keep theirs, which would lose a request that meets its end."""
PIECE = 4096
"""Bytes that are parsed before the frames in them are counted."""
MESSAGE_BYTES = 1024 * 1024
PING_SECONDS, PONG_SECONDS = 20.0, 30.0
FRAMES_BURST, FRAMES_PER_SECOND = 1_000, 100
"""Of one websocket, pings and pieces of messages included. Before the application is asked: each takes its time to parse."""
BYTES_BURST, BYTES_PER_SECOND = 4_000_000, 1_000_000
CLOSE_FLOODING = 4429
CLOSE_RESTART = 1012
REQUESTS_SECONDS = 1.0
"""So long ordinary requests have to end, once the turns have; streams may have no end."""
CLOSING_SECONDS = 1.0
"""So long a stop waits for clients to answer that their websockets are closed: what still comes in when the process has gone resets
their connections, and the reason may be lost with that."""
ANSWER_SECONDS = 5.0
"""A client that has not answered the end of its websocket by then is reset."""
KILLING_SECONDS = 15.0
"""So long the applications have to end that are cancelled; turns under way need up to ten."""
ENDING_SECONDS = 5.0
HEALTH = {
    "type": "http",
    "asgi": {"version": "3.0"},
    "http_version": "1.1",
    "method": "GET",
    "scheme": "http",
    "path": "/healthz",
    "raw_path": b"/healthz",
    "query_string": b"",
    "root_path": "",
    "headers": [(b"host", b"localhost")],
    "client": ("127.0.0.1", 0),
    "server": ("127.0.0.1", 0),
}


class Connection(HttpToolsProtocol):
    """A connection whose answers can be broken off, and which is cut off where the head or the body of a request has no end."""

    _received = _head = 0
    _in_head = True

    def data_received(self, data: bytes) -> None:
        self._head += len(data) if self._in_head else 0
        super().data_received(data)
        if self._in_head and self._head > HEAD_BYTES and not self.transport.is_closing():
            self._refuse(
                431,
                "Request Header Fields Too Large",
                "The head of the request is too long.",
                HEAD_BYTES,
            )

    def on_message_begin(self) -> None:
        self._received = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._in_head, self._head = False, 0
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._in_head = True
        super().on_message_complete()

    def on_body(self, body: bytes) -> None:
        self._received += len(body)
        limit = body_limit(self.url.decode("latin-1"))
        if self._received > limit + settings.IZZY_UPLOAD_LIMIT * PATIENCE:
            self._cut_off(limit)
            return
        super().on_body(body)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        super()._start_asgi_task(cycle, partial(_answered, cycle, app))

    def _cut_off(self, limit: int) -> None:
        if self.transport.is_closing():
            return
        begun = self.cycle.response_started
        self.cycle.disconnected = True  # what answers it now says so to nobody
        self.cycle.message_event.set()
        if begun:
            self.transport.close()
        else:
            self._refuse(
                413, "Request Entity Too Large", f"A request may have at most {limit:,} bytes.", limit
            )

    def _refuse(self, status: int, phrase: str, why: str, limit: int) -> None:
        body = json.dumps(TooLarge(why, limit=limit).to_json()).encode()
        head = f"HTTP/1.1 {status} {phrase}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        self.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.close()


async def _answered(
    cycle: RequestResponseCycle, app: Any, scope: dict[str, Any], receive: Any, send: Any
) -> None:
    async def send_or_abort(message: dict[str, Any]) -> None:
        if message["type"] != ABORT:
            await send(message)
        elif not cycle.response_complete:
            cycle.disconnected = True
            cycle.transport.close()  # without the end that a whole answer has

    await app(
        {**scope, "extensions": {**scope.get("extensions", {}), ABORT: {}}}, receive, send_or_abort
    )


class Socket(WebSocketsSansIOProtocol):
    """A websocket of which no more is read than BYTES_PER_SECOND, and closed (4429) where more frames come than any client of
    ours sends: what arrives is parsed on the event loop that everybody shares. IZZY_THROTTLE=off lifts both.

    One that breaks the rules, such as by a message over MESSAGE_BYTES, gets the reason: what it still sends is thrown away until
    it has answered. What is sent to a client that has gone is lost without an error.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.close_timeout = ANSWER_SECONDS
        self._frames = Bucket(FRAMES_BURST, FRAMES_PER_SECOND)
        self._bytes = Bucket(BYTES_BURST, BYTES_PER_SECOND)

    def data_received(self, data: bytes) -> None:
        self._bytes.left -= len(data)
        for start in range(0, len(data), PIECE):
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + PIECE])

    def handle_events(self) -> None:
        if settings.IZZY_THROTTLE and self.handshake_complete:
            for _ in self.conn.events:
                if not self._frames.take():
                    self.conn.events.clear()
                    self._fail(CLOSE_FLOODING)
                    return
        super().handle_events()

    def handle_connect(self, event: Request) -> None:
        if event.path.isascii():
            super().handle_connect(event)
            return
        self.handshake_initiated = self.handshake_complete = self.close_sent = True
        self.conn.send_response(self.conn.reject(400, "The address is not ASCII.\n"))
        self._write()
        self.transport.close()

    def handle_parser_exception(self) -> None:
        if self.close_sent:
            return  # it is being thrown away
        self._write()
        self._close_soon(ANSWER_SECONDS)
        reason = self.conn.close_sent
        self.queue.put_nowait({"type": "websocket.disconnect", "code": reason.code if reason else 1006})

    def shutdown(self) -> None:
        if self.close_sent or not self.handshake_complete:
            super().shutdown()
            return
        self.stop_keepalive()
        self.queue.put_nowait({"type": "websocket.disconnect", "code": CLOSE_RESTART})
        self.conn.send_close(CLOSE_RESTART)
        self._write()
        self._close_soon(CLOSING_SECONDS)

    async def run_asgi(self) -> None:
        self.scope["extensions"][WRITABLE] = {"event": self.writable}
        await super().run_asgi()

    async def receive(self) -> Any:
        """Nothing is read between two messages, so that one who waits with the next holds the client back."""
        if settings.IZZY_THROTTLE and (debt := -self._bytes.fill()) > 0:
            await asyncio.sleep(debt / BYTES_PER_SECOND)
        return await super().receive()

    async def send(self, message: Any) -> None:
        await self.writable.wait()
        if not self.close_sent:
            with suppress(ClientDisconnected):
                await super().send(message)

    def _fail(self, code: int) -> None:
        self.conn.fail(code)
        self._write()
        self.close_sent = True
        self.transport.close()  # Without waiting for an answer, which would have to be looked for in the flood.

    def _write(self) -> None:
        self.transport.write(b"".join(self.conn.data_to_send()))

    def _close_soon(self, seconds: float) -> None:
        self.close_sent = True
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(seconds, self.transport.close)


async def answers(application: Any) -> bool:
    """Whether the application answers a request for /healthz; whatever it says is an answer."""
    said = asyncio.Event()
    body = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> dict[str, Any]:
        if body:
            return body.pop()
        await asyncio.Event().wait()  # until it is cancelled
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        said.set()

    await application(dict(HEALTH), receive, send)
    return said.is_set()


async def _while(holds: Callable[[], bool], seconds: float) -> None:
    """Waits as long as it holds, for so many seconds at most."""
    until = time.monotonic() + seconds
    while holds() and time.monotonic() < until:  # noqa: ASYNC110  nothing says when it ends
        await asyncio.sleep(0.02)


class WebServer(uvicorn.Server):
    """uvicorn's server with such connections. `beat` is called every `beat_seconds` for as long as requests are answered.

    SIGTERM and SIGINT end it in order: it takes up no connection, `drains` let what was begun come to its end within
    `drain_seconds`, and websockets are closed as of a restart (1012), so that their clients come back; at the second one it
    stops at once.
    """

    def __init__(
        self,
        application: Any,
        *,
        ready: Callable[[], None],
        beat: Callable[[], None] | None = None,
        beat_seconds: float = 0.0,
        drains: Sequence[Callable[[float], Awaitable[None]]] = (),
        drain_seconds: float = 0.0,
    ) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                http=Connection,
                ws=Socket,
                lifespan="on",
                backlog=BACKLOG,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                ws_max_size=MESSAGE_BYTES,
                ws_ping_interval=PING_SECONDS,
                ws_ping_timeout=PONG_SECONDS,
                ws_per_message_deflate=False,
                proxy_headers=False,
                server_header=False,
                headers=[("server", "izzy")],
                log_config=None,
                access_log=False,
            )
        )
        self._application, self._ready = application, ready
        self._beat, self._beat_seconds = beat, beat_seconds
        self._drains, self._drain_seconds = drains, drain_seconds
        self._tasks: list[asyncio.Future[Any]] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._beat is not None:
            self._tasks.append(asyncio.ensure_future(self._keep_beating(self._beat)))
        self._ready()

    async def _keep_beating(self, beat: Callable[[], None]) -> None:
        while True:
            if await answers(self._application):
                beat()
            await asyncio.sleep(self._beat_seconds)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        yield

    def _on_signal(self) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        draining = asyncio.gather(
            *(each(self._drain_seconds) for each in self._drains), return_exceptions=True
        )
        while not (draining.done() or self.force_exit):
            await asyncio.wait([draining], timeout=0.1)
        for failed in draining.result() if draining.done() else ():
            if failed is not None:
                logger.error("what was begun could not be ended in order", exc_info=failed)
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        if not self.force_exit:
            await _while(
                lambda: bool(state.connections or state.tasks) and not self.force_exit, REQUESTS_SECONDS
            )
        leave_within(KILLING_SECONDS + ENDING_SECONDS)
        for task in state.tasks:
            task.cancel()
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=KILLING_SECONDS)
        await self.lifespan.shutdown()


def leave_within(seconds: float) -> None:
    """Ends the process after so many seconds. Python would wait for ever for a request's thread that waits in turn for the event
    loop, which has ended: as where the database was out of reach."""
    ending = threading.Timer(seconds, _exit, args=[0])
    ending.daemon = True
    ending.start()
