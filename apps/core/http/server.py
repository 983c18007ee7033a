"""uvicorn as Izzy runs it, and how a process ends in order."""

import asyncio
import logging
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn

from apps.core.http.connections import Connection
from apps.core.http.edge import BACKLOG
from apps.core.http.websockets import MESSAGE_BYTES, PING_SECONDS, PONG_SECONDS, Socket

logger = logging.getLogger(__name__)

KEEP_ALIVE_SECONDS = 150
"""So long a connection may lie idle, or a request be half sent: longer than proxies keep theirs, which would lose a request that
meets its end."""
TAKING_SECONDS = 300.0
"""So long a client may take nothing of what waits for it, in steps of the system's buffers of a megabyte or more."""
REQUESTS_SECONDS = 1.0
"""So long ordinary requests have to end, once the turns have; streams may have no end."""
ENDING = (signal.SIGTERM, signal.SIGINT)
KILLING_SECONDS = 15.0
"""So long the applications have to end that are cancelled; turns under way need up to ten."""
LEAVING_SECONDS = REQUESTS_SECONDS + 2 * KILLING_SECONDS
"""The second time for the turns, which are stored last."""
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
    """uvicorn's server with such connections. `beat` is called every `beat_seconds` for as long as requests are answered,
    `ending` when all is drained and the rest has LEAVING_SECONDS at most.

    A client that takes nothing of its answer is let go. SIGTERM and SIGINT end the server in order: it takes up no connection,
    `drains` let what was begun come to its end within `drain_seconds`, and websockets are closed as of a restart (1012), so
    that their clients come back; at the second one nothing is waited for.
    """

    def __init__(
        self,
        application: Any,
        *,
        ready: Callable[[], None],
        ending: Callable[[], None] = lambda: None,
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
        self._application, self._ready, self._ending = application, ready, ending
        self._beat, self._beat_seconds = beat, beat_seconds
        self._drains, self._drain_seconds = drains, drain_seconds
        self._beating: asyncio.Task[None] | None = None
        self._untaken: dict[asyncio.BaseTransport, tuple[int, float]] = {}  # bytes, and since when

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self._beat is not None:
            self._beating = asyncio.create_task(self._keep_beating(self._beat))
        self._ready()

    async def _keep_beating(self, beat: Callable[[], None]) -> None:
        while True:
            if await answers(self._application):
                beat()
            await asyncio.sleep(self._beat_seconds)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # each second
            self._let_go()
        return await super().on_tick(counter)

    def _let_go(self) -> None:
        """Resets clients that take nothing of what they are sent, also as their connection closes."""
        now, before, self._untaken = time.monotonic(), self._untaken, {}
        for connection in self.server_state.connections:
            transport = connection.transport
            if waiting := transport.get_write_buffer_size():
                bytes_, since = before.get(transport, (waiting, now))
                if waiting == bytes_ and now - since >= TAKING_SECONDS:
                    transport.abort()
                else:
                    self._untaken[transport] = (waiting, since if waiting == bytes_ else now)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, self._on_signal)
        try:
            yield
        finally:
            for number in ENDING:
                loop.remove_signal_handler(number)

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
        self._ending()
        state = self.server_state
        for connection in list(state.connections):
            try:
                connection.shutdown()
            except Exception:  # the others get theirs
                logger.exception("a connection could not be ended in order")
        await _while(
            lambda: bool(state.connections or state.tasks) and not self.force_exit, REQUESTS_SECONDS
        )
        for task in state.tasks:
            task.cancel()
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=KILLING_SECONDS)
        await self.lifespan.shutdown()
