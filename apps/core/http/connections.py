"""Connections as Izzy's web server takes them: what a client may send before any of our code sees it."""

import asyncio
import json
import logging
from functools import partial
from typing import Any

from django.conf import settings
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from apps.core.errors import TooLarge
from apps.core.http.edge import ABORT, body_limit

logger = logging.getLogger(__name__)

PATIENCE = 8
"""A body over its limit is read and thrown away, so that its sender gets to read the answer; one that is longer by more than so
many times IZZY_UPLOAD_LIMIT is cut off."""
HEAD_BYTES = 64 * 1024
"""Of a request line and its headers. The parser would take any number."""
REQUESTS_WAITING = 8
"""Of one connection, behind the one that is being answered."""
OF_AN_UPGRADE = frozenset({b"connection", b"upgrade", b"http2-settings"})


class Connection(HttpToolsProtocol):
    """A connection that bounds what its client may send, and lets go of one that says nothing.

    Of requests that come before the one before them is answered some wait; headers behind a body are dropped; a wish for HTTP/2 is
    passed over. One whose answer is complete before its body has come may send the rest and read the answer, also where the
    connection ends with it.
    """

    _received = 0  # of the body under way
    _unread = 0  # bytes since the last whole head or piece of a body
    _in_head = True
    _ends = False  # when the rest of the body has come
    _upgrade = b""  # a head that wished for another protocol, without that wish

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._unanswered: set[RequestResponseCycle] = set()

    # --- What the event loop calls -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_for_client()

    def data_received(self, data: bytes) -> None:
        self._unread += len(data)
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            rest = data[upgrade.args[0] :]
            if not self._upgrade:
                self.handle_websocket_upgrade()
                if rest and not self.transport.is_closing():
                    self.transport.get_protocol().data_received(rest)  # type: ignore[attr-defined]
                return
            self._pass_over(rest)
        except HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
        if self.transport.is_closing():
            return
        if self._unread > HEAD_BYTES:
            self._refuse(
                431, "Request Header Fields Too Large", "The head of a request is too long.", HEAD_BYTES
            )
        elif self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            self._wait_for_client()

    def connection_lost(self, exc: Exception | None) -> None:
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def timeout_keep_alive_handler(self) -> None:
        if self.flow.read_paused:  # the application has not taken what came
            self._wait_for_client()
        else:
            self.transport.abort()

    def _wait_for_client(self) -> None:
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    # --- What the parser calls ---------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= REQUESTS_WAITING:
            raise TooLarge("Too many requests wait on one connection.", limit=REQUESTS_WAITING)
        self._received, self._in_head, self._upgrade = 0, True, b""
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unread, self._in_head = 0, False
        if self.parser.should_upgrade() and not self._should_upgrade():
            if not any(name == b"upgrade" for name, _ in self.headers):
                raise ValueError("This is no proxy.")  # CONNECT
            kept = [pair for pair in self.headers if pair[0] not in OF_AN_UPGRADE]
            if any(pair[0] == b"connection" and b"close" in pair[1].lower() for pair in self.headers):
                kept.append((b"connection", b"close"))
            version = b"HTTP/" + self.parser.get_http_version().encode()
            first = b" ".join([self.parser.get_method(), self.url, version])
            lines = [first, *(b": ".join(pair) for pair in kept), b"", b""]
            self._upgrade = b"\r\n".join(lines)
            return
        super().on_headers_complete()
        if self.pipeline:
            self.flow.resume_reading()  # else nobody learns that the client has gone

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        self._received += len(body)
        limit = body_limit(self.url.decode("latin-1"))
        if self._received > limit + settings.IZZY_UPLOAD_LIMIT * PATIENCE:
            self._cut_off(limit)
        elif not self._upgrade:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._unread = 0
        if self._upgrade:
            return
        super().on_message_complete()
        if self._ends:
            self.transport.close()

    def handle_websocket_upgrade(self) -> None:
        if self._answering or self.pipeline or self.flow.write_paused:
            self.send_400_response("A websocket begins when all is answered.")
            return
        self._unset_keepalive_if_required()
        super().handle_websocket_upgrade()

    def _pass_over(self, rest: bytes) -> None:
        """Reads the head again, without the wish for another protocol: the parser takes no body behind one."""
        head, self._upgrade = self._upgrade, b""
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own
        self.data_received(head + rest)

    # --- Answers -----------------------------------------------------------------------------------------------

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._unanswered.add(cycle)
        super()._start_asgi_task(cycle, partial(self._answered, cycle, app))

    async def _answered(
        self, cycle: RequestResponseCycle, app: Any, scope: dict[str, Any], receive: Any, send: Any
    ) -> None:
        reads_on = True

        async def send_on(message: dict[str, Any]) -> None:
            nonlocal reads_on
            if message["type"] == ABORT:
                self._break_off(cycle)
                return
            if message["type"] == "http.response.start":
                reads_on = not cycle.waiting_for_100_continue  # else no body comes
            last = message["type"] == "http.response.body" and not message.get("more_body")
            early = last and reads_on and cycle.more_body and not cycle.keep_alive
            cycle.keep_alive = cycle.keep_alive or early
            await send(message)
            if early and cycle.more_body:
                self._ends = True
            elif early:
                self.transport.close()

        try:
            await app(
                {**scope, "extensions": {**scope.get("extensions", {}), ABORT: {}}}, receive, send_on
            )
        except asyncio.CancelledError:  # the server stops
            self._break_off(cycle)
        except Exception:
            logger.exception("Exception in ASGI application")
            if cycle.response_started:
                self._break_off(cycle)
            else:
                headers = [(b"content-length", b"0"), (b"connection", b"close")]
                await send_on({"type": "http.response.start", "status": 500, "headers": headers})
                await send_on({"type": "http.response.body", "body": b""})
        finally:
            self._unanswered.discard(cycle)

    @property
    def _answering(self) -> bool:
        return any(not cycle.response_complete for cycle in self._unanswered)

    def send_400_response(self, msg: str) -> None:
        if self._answering:
            self.transport.close()  # it would be taken for a part of that answer
        else:
            super().send_400_response(msg)

    def _break_off(self, cycle: RequestResponseCycle) -> None:
        if not cycle.response_complete:
            cycle.disconnected = True
            self.transport.close()  # without the end that a whole answer has

    def _cut_off(self, limit: int) -> None:
        if self.transport.is_closing():
            return
        alone = not self.cycle.response_started and len(self._unanswered) == 1
        self.cycle.disconnected = True  # what answers it now says so to nobody
        self.cycle.message_event.set()
        if not alone:
            self.transport.close()
        else:
            self._unanswered.clear()
            self._refuse(
                413, "Request Entity Too Large", f"A request may have at most {limit:,} bytes.", limit
            )

    def _refuse(self, status: int, phrase: str, why: str, limit: int) -> None:
        if self._answering:
            self.transport.close()
            return
        body = json.dumps(TooLarge(why, limit=limit).to_json()).encode()
        head = f"HTTP/1.1 {status} {phrase}\r\nContent-Type: application/json\r\nConnection: close\r\n"
        self.transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.close()
