"""Daphne as Izzy runs it: what a client may send before any of our code sees it.

Import it only where the web server runs: daphne installs its event loop when it is imported.
"""

import asyncio
import json
import logging
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import daphne.server
from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.ws_protocol import WebSocketProtocol
from django.conf import settings

from apps.core.errors import TooLarge
from apps.core.http.clients import Bucket
from apps.core.http.edge import ABORT, BACKLOG, WRITABLE, body_limit

logger = logging.getLogger(__name__)

PATIENCE = 8
"""A body over its limit is read and thrown away, so that its sender gets to read the answer; one that is longer by more than so
many times IZZY_UPLOAD_LIMIT is cut off."""
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
"""A client that has not answered by then is reset."""
KILLING_SECONDS = 15.0
"""So long the applications have to end that are cancelled; turns under way need up to ten."""
DRAIN = "drain"
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


class Request(WebRequest):  # type: ignore[misc]  # daphne has no types
    """A request of which no more is kept than the site accepts, and whose headers steer nothing but the site.

    Of a longer body one byte more than the limit of its path is kept, from which the application sees that it is too long.
    """

    _received = 0
    _content_type: list[bytes] | None = None

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802  twisted's name
        limit = body_limit(getattr(self.channel, "_path", b"").decode("latin-1"))
        room = limit + 1 - self._received
        self._received += len(data)
        if room > 0:
            super().handleContentChunk(data[:room])
        most = limit + settings.IZZY_UPLOAD_LIMIT * PATIENCE
        if self._received - len(data) <= most < self._received:
            self._cut_off(limit)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:  # noqa: N802  twisted's name
        """Hides the content type from twisted, which would parse forms too: on the event loop, and answering a
        malformed one itself."""
        self._content_type = self.requestHeaders.getRawHeaders(b"content-type")
        self.requestHeaders.removeHeader(b"content-type")
        super().requestReceived(command, path, version)

    def process(self) -> Any:
        headers = self.requestHeaders
        if self._content_type is not None:
            headers.setRawHeaders(b"content-type", self._content_type)
        headers.removeHeader(b"daphne-root-path")
        if not all(value.isascii() for value in headers.getRawHeaders(b"sec-websocket-protocol", [])):
            headers.removeHeader(b"sec-websocket-protocol")
        return super().process()

    def handle_reply(self, message: dict[str, Any]) -> None:
        if message.get("type") != ABORT:
            super().handle_reply(message)
        elif self.channel is not None and not self.finished:
            self.channel.loseConnection()  # without the end that a whole answer has

    def handle_exception(self, exception: Exception) -> None:
        """An answer that has begun is broken off: daphne would begin another, and stop looking after all connections."""
        if self._response_started:
            self.handle_reply({"type": ABORT})
        else:
            super().handle_exception(exception)

    def _cut_off(self, limit: int) -> None:
        error = TooLarge(f"A request may have at most {limit:,} bytes.", limit=limit)
        body = json.dumps(error.to_json()).encode()
        head = "HTTP/1.1 413 Request Entity Too Large\r\nContent-Type: application/json\r\nConnection: close\r\n"
        self.channel.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.channel.loseConnection()


class Socket(WebSocketProtocol):  # type: ignore[misc]  # daphne has no types
    """A websocket that is read no faster than BYTES_PER_SECOND, and closed (4429) where more frames come than any client of
    ours sends: what arrives is parsed piece by piece on the event loop that everybody shares. IZZY_THROTTLE=off lifts both."""

    def connectionMade(self) -> None:  # noqa: N802  twisted's name
        self.frames = Bucket(FRAMES_BURST, FRAMES_PER_SECOND)
        self.bytes = Bucket(BYTES_BURST, BYTES_PER_SECOND)
        self.writable = asyncio.Event()
        self.writable.set()
        super().connectionMade()
        # In place of the HTTP channel, which would stop reading where the client does not.
        self.transport.unregisterProducer()
        self.transport.registerProducer(Backlog(self.writable), True)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802  twisted's name
        self.bytes.left -= len(data)
        if settings.IZZY_THROTTLE and (debt := -self.bytes.fill()) > 0:
            self.transport.pauseProducing()
            asyncio.get_running_loop().call_later(debt / BYTES_PER_SECOND, self._read_on)
        super().dataReceived(data)

    def sendData(  # noqa: N802  autobahn's name
        self, data: bytes, sync: bool = False, chopsize: int | None = None
    ) -> None:
        """At once where nothing waits before it: the reactor would ask the system three times and be woken for it. Autobahn's composes
        a coloured line for its log of each frame, read or not, which takes longer than sending it."""
        transport = self.transport
        if sync or chopsize or self.send_queue:
            super().sendData(data, sync, chopsize)
            return
        if transport.connected and transport not in transport.reactor.getWriters():
            sent = transport.writeSomeData(data)
            if isinstance(sent, int):  # else the connection is lost, which the reactor finds out
                data = data[sent:]
        transport.write(data)

    def processData(self) -> bool:  # noqa: N802  autobahn's name
        if self.current_frame is None and settings.IZZY_THROTTLE and not self.frames.take():
            self.data = b""
            self.sendClose(code=CLOSE_FLOODING)
            self.dropConnection()  # Without waiting for an answer, which would have to be looked for in the flood.
            return False
        return bool(super().processData())

    def _read_on(self) -> None:
        if self.transport.connected:
            self.transport.resumeProducing()


class Backlog:
    """Says whether a client takes what it is sent: not while more than the transport's buffer (64 KiB) waits for it."""

    def __init__(self, writable: asyncio.Event) -> None:
        self._writable = writable

    def pauseProducing(self) -> None:  # noqa: N802  twisted's names, here and below
        self._writable.clear()

    def resumeProducing(self) -> None:  # noqa: N802
        self._writable.set()

    stopProducing = resumeProducing  # noqa: N815


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


class Factory(HTTPFactory):  # type: ignore[misc]  # daphne has no types
    """Makes every connection's requests of our kind."""

    def buildProtocol(self, addr: Any) -> Any:  # noqa: N802  twisted's name
        protocol = super().buildProtocol(addr)
        protocol.requestFactory = Request
        return protocol


class WebServer(daphne.server.Server):  # type: ignore[misc]  # daphne has no types
    """Daphne's server with such requests; a websocket frame over the limit gets the code 1009 before it is closed.

    It listens at its endpoints, or where there is one on `listener`, and then at the path `inner` for the processes that share it.
    `beat` is called every `beat_seconds` for as long as requests are answered. SIGTERM and SIGINT end it in order: it takes up no connection, `drains` let what was begun come to its end
    within `drain_seconds`, and websockets are closed as of a restart (1012), so that their clients come back; at the second one it
    stops at once.
    """

    failed = False
    """Whether the address could not be listened on."""

    def __init__(
        self,
        *,
        listener: socket.socket | None = None,
        inner: str = "",
        beat: Callable[[], None] | None = None,
        beat_seconds: float = 0.0,
        drains: Sequence[Callable[[float], Awaitable[None]]] = (),
        drain_seconds: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(signal_handlers=False, **options)
        self._listener, self._inner = listener, inner
        self._drains, self._drain_seconds = drains, drain_seconds
        self._beat, self._beat_seconds = beat, beat_seconds
        self.ready_callable: Callable[[], None]
        self._ports: list[Any] = []
        self._tasks: list[asyncio.Task[None]] = []

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        """Says that an answer can be broken off, and of a websocket when its client takes more."""
        extensions = {**scope.get("extensions", {}), ABORT: {}}
        if isinstance(protocol, Socket):
            extensions[WRITABLE] = {"event": protocol.writable}
        return super().create_application(protocol, {**scope, "extensions": extensions})

    def run(self) -> None:
        daphne.server.HTTPFactory = Factory  # daphne asks nobody which one to take
        if self._listener is not None:
            self.endpoints.clear()
        self.ready_callable = partial(self._begin, self.ready_callable)
        super().run()

    def _begin(self, ready: Callable[[], None]) -> None:
        loop = asyncio.get_event_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._on_signal)
        if self._listener is not None:
            reactor = daphne.server.reactor
            if self._inner:
                inner = reactor.listenUNIX(self._inner, self.http_factory, BACKLOG, mode=0o600)
                self.listen_success(inner)
            descriptor, family = self._listener.fileno(), self._listener.family
            self.listen_success(reactor.adoptStreamPort(descriptor, family, self.http_factory))
            self._listener.close()  # the reactor has its own
        if self._beat is not None:
            self._tasks.append(loop.create_task(self._keep_beating(self._beat)))
        ready()

    def listen_success(self, port: Any) -> None:
        self._ports.append(port)
        self.ws_factory.setProtocolOptions(failByDrop=False, closeHandshakeTimeout=ANSWER_SECONDS)
        self.ws_factory.protocol = Socket
        super().listen_success(port)

    async def _keep_beating(self, beat: Callable[[], None]) -> None:
        while True:
            if await answers(self.application):
                beat()
            await asyncio.sleep(self._beat_seconds)

    def _on_signal(self) -> None:
        if any(task.get_name() == DRAIN for task in self._tasks):
            self.stop()
        else:
            self._tasks.append(asyncio.ensure_future(self._drain()))
            self._tasks[-1].set_name(DRAIN)

    async def _drain(self) -> None:
        try:
            for port in self._ports:
                port.stopListening()
            ending = [each(self._drain_seconds) for each in self._drains]
            for failed in await asyncio.gather(*ending, return_exceptions=True):
                if failed is not None:
                    logger.error("what was begun could not be ended in order", exc_info=failed)
            await _while(self._answering, min(REQUESTS_SECONDS, self._drain_seconds))
            sockets = [protocol for protocol in self.connections if isinstance(protocol, Socket)]
            for socket_ in sockets:
                if socket_.state == Socket.STATE_OPEN:
                    socket_.sendCloseFrame(code=CLOSE_RESTART)
            await _while(
                lambda: any(each.state == Socket.STATE_CLOSING for each in sockets), CLOSING_SECONDS
            )
        finally:
            self.stop()

    def _answering(self) -> bool:
        """Whether requests are under way."""
        return any(
            isinstance(protocol, Request) and not details["application_instance"].done()
            for protocol, details in self.connections.items()
            if "application_instance" in details
        )

    def listen_error(self, failure: Any) -> None:
        self.failed = True
        super().listen_error(failure)

    def kill_all_applications(self) -> Any:
        """Requests still on their way in have no application, which daphne does not expect. Those that wait for a database that is out
        of reach do not end when they are asked to."""
        for protocol, details in list(self.connections.items()):
            if "application_instance" not in details:
                del self.connections[protocol]
        return super().kill_all_applications().addTimeout(KILLING_SECONDS, daphne.server.reactor)
