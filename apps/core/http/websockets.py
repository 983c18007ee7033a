"""Websockets as Izzy's web server takes them."""

import asyncio
from contextlib import suppress
from typing import Any

from django.conf import settings
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame
from websockets.http11 import Request
from websockets.protocol import State

from apps.core.http.clients import Bucket
from apps.core.http.edge import WRITABLE

PIECE = 4096
"""Bytes that are parsed before the frames in them are counted."""
MESSAGE_BYTES = 1024 * 1024
PING_SECONDS, PONG_SECONDS = 20.0, 30.0
FRAMES_BURST, FRAMES_PER_SECOND = 1_000, 100
"""Of one websocket, pings and pieces of messages included. Before the application is asked: each takes its time to parse."""
BYTES_BURST, BYTES_PER_SECOND = 4_000_000, 1_000_000
CLOSE_FLOODING = 4429
CLOSE_RESTART, CLOSE_NO_PONG, CLOSE_NO_TEXT, CLOSE_GONE = 1012, 1011, 1007, 1006
CLOSING_SECONDS = 1.0
"""So long a stop waits for clients to answer that their websockets are closed: what still comes in when the process has gone resets
their connections, and the reason may be lost with that."""
ANSWER_SECONDS = 5.0
"""A client that has not answered the end of its websocket by then, or has not taken what it was sent, is reset."""
BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Socket(WebSocketsSansIOProtocol):
    """A websocket of which no more is read than BYTES_PER_SECOND, and closed (4429) where more frames come than any client of
    ours sends: what arrives is parsed on the event loop that everybody shares. IZZY_THROTTLE=off lifts both.

    One that breaks the rules, such as by a message over MESSAGE_BYTES, gets the reason: what it sends in the ANSWER_SECONDS after
    that is thrown away. What is sent to a client that has gone is lost without an error.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._frames = Bucket(FRAMES_BURST, FRAMES_PER_SECOND)
        self._bytes = Bucket(BYTES_BURST, BYTES_PER_SECOND)

    # --- From the client ---------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        self._bytes.left -= len(data)
        for start in range(0, len(data), PIECE):
            if self.transport.is_closing():
                return
            super().data_received(data[start : start + PIECE])
        # Nothing else shows that a head went over the library's limits.
        if self.conn.handshake_exc is not None and not self.close_sent:
            self._refuse()

    def handle_connect(self, event: Request) -> None:
        if event.path.isascii():
            super().handle_connect(event)
        else:
            self.conn.send_response(self.conn.reject(400, "The address is not ASCII.\n"))
            self._refuse()

    def handle_events(self) -> None:
        if settings.IZZY_THROTTLE and self.handshake_complete:
            for _ in self.conn.events:
                if not self._frames.take():
                    self.conn.events.clear()
                    self._fail(CLOSE_FLOODING)
                    return
        super().handle_events()

    def handle_parser_exception(self) -> None:
        if self.close_sent:
            return  # it is being thrown away
        if not self.handshake_complete:
            self._refuse()
            return
        broken = self.conn.close_sent
        self._left(broken.code if broken else CLOSE_GONE)
        self._write()
        self._end_within(ANSWER_SECONDS)

    def send_receive_event_to_app(self) -> None:
        try:
            if self.curr_msg_data_type == "text":
                b"".join(self.frames).decode()
        except UnicodeDecodeError:
            self.frames = []
            self._close(CLOSE_NO_TEXT, "", ANSWER_SECONDS)
        else:
            super().send_receive_event_to_app()

    def handle_close(self, event: Frame) -> None:
        super().handle_close(event)
        if self.close_timer is None:
            self.close_timer = self.loop.call_later(ANSWER_SECONDS, self.transport.abort)

    async def receive(self) -> Any:
        """Nothing is read between two messages, so that one who waits with the next holds the client back."""
        if settings.IZZY_THROTTLE and (debt := -self._bytes.fill()) > 0:
            await asyncio.sleep(debt / BYTES_PER_SECOND)
        return await super().receive()

    # --- To the client -----------------------------------------------------------------------------------------

    async def run_asgi(self) -> None:
        self.scope["extensions"][WRITABLE] = {"event": self.writable}
        application = self.app

        async def until_the_stop(scope: Any, receive: Any, send: Any) -> None:
            with suppress(asyncio.CancelledError):
                await application(scope, receive, send)

        self.app = until_the_stop
        await super().run_asgi()

    async def send(self, message: Any) -> None:
        if message["type"] == "websocket.close" and self.handshake_complete:
            self._close(message.get("code", 1000), message.get("reason") or "", ANSWER_SECONDS)
            return
        await self.writable.wait()
        if not self.close_sent:
            with suppress(ClientDisconnected):
                await super().send(message)

    def send_500_response(self) -> None:
        if not self.conn.eof_sent:
            super().send_500_response()

    def shutdown(self) -> None:
        self.stop_keepalive()
        if self.handshake_complete:
            self._close(CLOSE_RESTART, "", CLOSING_SECONDS)
        else:
            self.send_500_response()
            self.transport.close()

    def keepalive_timeout(self) -> None:
        self.pong_timer = None
        if not self.close_sent and not self.transport.is_closing():
            self._fail(CLOSE_NO_PONG)

    # --- Its end -----------------------------------------------------------------------------------------------

    def _close(self, code: int, reason: str, seconds: float) -> None:
        """Says why, and waits so long for the client to answer."""
        if not (self.close_sent or self.disconnected) and self.conn.state is State.OPEN:
            self._left(code)
            self.conn.send_close(code, reason)
            self._write()
            self._end_within(seconds)

    def _fail(self, code: int) -> None:
        """Says why and waits for no answer, which in a flood would have to be looked for."""
        self._left(code)
        self.conn.fail(code)
        self._write()
        self._end_within(ANSWER_SECONDS)
        self.transport.close()

    def _refuse(self) -> None:
        """Ends what has not become a websocket, with the library's answer where it has one."""
        self._left(CLOSE_GONE)
        self.handshake_initiated = self.handshake_complete = self.close_sent = True
        self.transport.write(b"".join(self.conn.data_to_send()) or BAD_REQUEST)
        self.transport.close()

    def _left(self, code: int) -> None:
        """Tells the application."""
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code})

    def _write(self) -> None:
        self.transport.write(b"".join(self.conn.data_to_send()))

    def _end_within(self, seconds: float) -> None:
        self.close_sent = True
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        self.close_timer = self.loop.call_later(seconds, self.transport.abort)
