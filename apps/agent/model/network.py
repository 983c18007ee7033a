"""Connections to the model's endpoint, straight on asyncio's transports. The HTTP client's own go through anyio, which takes as long
for each piece of an answer as all of the rest of the client together: it stops and resumes the socket for each read.

Import it only where a client is made: the HTTP client takes a while to import.
"""

import asyncio
import math
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import Any, cast
from urllib.request import getproxies

import anthropic
import httpcore2
import httpx2
from aiohappyeyeballs import start_connection
from anthropic import DEFAULT_CONNECTION_LIMITS

READ_AHEAD = 256 * 1024
"""Bytes that have come and were not read; beyond that the socket is left alone until they are."""
PROXIES = {"http", "https", "all"}
KEEP_ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 60), ("TCP_KEEPCNT", 5))
        if hasattr(socket, name)
    ),
]
"""As the SDK asks for: a connection whose other end is gone is noticed while an answer is long in coming."""


class Connection(asyncio.Protocol, httpcore2.AsyncNetworkStream):
    """One connection. Errors are httpcore's; times are in seconds, None for no limit."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport  # from the moment it is made
        self._came = bytearray()
        self._ended: Exception | None = None  # why nothing comes any more; EOFError for an orderly end
        self._reader: asyncio.Future[None] | None = None
        self._late = math.inf  # when what is read now has not come in time
        self._timer: asyncio.TimerHandle | None = None  # goes on from read to read, as it costs as much
        self._writer: asyncio.Future[None] | None = None
        self._full = self._paused = False

    # --- What the event loop calls -----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._came += data
        if len(self._came) > READ_AHEAD and not self._paused:
            self._transport.pause_reading()
            self._paused = True
        _wake(self._reader)

    def eof_received(self) -> None:
        self._end(EOFError())

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or EOFError())

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        _wake(self._writer)

    def _end(self, why: Exception) -> None:
        self._ended = self._ended or why
        if self._timer is not None:
            self._timer.cancel()
        _wake(self._reader)
        _wake(self._writer)

    # --- What httpcore calls -----------------------------------------------------------------------------------

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109  httpcore's
        if not self._came and self._ended is None:
            loop = asyncio.get_running_loop()
            self._reader = loop.create_future()
            self._late = math.inf if timeout is None else loop.time() + timeout
            if self._late < (math.inf if self._timer is None else self._timer.when()):
                self._look_when_late(loop)
            try:
                await self._reader
            finally:
                self._reader = None
        if not self._came:
            if isinstance(self._ended, EOFError):
                return b""
            raise httpcore2.ReadError(str(self._ended)) from self._ended
        data = bytes(self._came[:max_bytes])
        del self._came[:max_bytes]
        if self._paused and len(self._came) <= READ_AHEAD // 2:
            self._paused = False
            self._transport.resume_reading()
        return data

    def _look_when_late(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_at(self._late, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        if self._reader is not None and loop.time() < self._late:
            self._look_when_late(loop)
        elif self._reader is not None:
            _expire(self._reader, httpcore2.ReadTimeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if self._ended is not None:
            raise httpcore2.WriteError("the connection has ended") from self._ended
        self._transport.write(buffer)
        if self._full:
            self._writer = asyncio.get_running_loop().create_future()
            try:
                await _within(self._writer, timeout, httpcore2.WriteTimeout)
            finally:
                self._writer = None
            if self._ended is not None:
                raise httpcore2.WriteError("the connection has ended") from self._ended

    async def aclose(self) -> None:
        if self._full:  # whoever does not take what was sent is not waited for
            self._transport.abort()
        else:
            self._transport.close()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> "Connection":
        loop, plain = asyncio.get_running_loop(), self._transport
        try:
            async with asyncio.timeout(timeout):
                secured = await loop.start_tls(plain, self, ssl_context, server_hostname=server_hostname)
            self._transport = cast("asyncio.Transport", secured)
        except TimeoutError as error:
            plain.abort()
            raise httpcore2.ConnectTimeout("no TLS handshake in time") from error
        except (OSError, ssl.SSLError, EOFError) as error:
            plain.abort()
            raise httpcore2.ConnectError(str(error)) from error
        return self

    def get_extra_info(self, info: str) -> Any:
        if (
            info == "is_readable"
        ):  # of an idle connection: its other end is gone, or says what nobody asked
            return bool(self._came) or self._ended is not None
        names = {"client_addr": "sockname", "server_addr": "peername"}
        return self._transport.get_extra_info(names.get(info, info))


class Network(httpcore2.AsyncNetworkBackend):
    """Opens connections for httpcore."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> Connection:
        loop = asyncio.get_running_loop()
        from_ = None
        if local_address is not None:
            from_ = await loop.getaddrinfo(local_address, 0, type=socket.SOCK_STREAM)
        try:
            async with asyncio.timeout(timeout):
                found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                opened = await start_connection(found, local_addr_infos=from_, happy_eyeballs_delay=0.25)
                _, connection = await loop.create_connection(Connection, sock=opened)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"{host} does not answer") from error
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        for option in socket_options or ():
            with suppress(OSError):
                opened.setsockopt(*option)
        return connection

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Transport(httpx2.AsyncHTTPTransport):
    """The HTTP client's transport over such connections."""

    def __init__(self) -> None:
        limits = DEFAULT_CONNECTION_LIMITS
        super().__init__(verify=_certificates(), limits=limits)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=_certificates(),
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            socket_options=KEEP_ALIVE,
            network_backend=Network(),
        )


@cache
def _certificates() -> ssl.SSLContext:
    """Takes a while to load."""
    return httpx2.create_ssl_context()


def http_client(timeout: httpx2.Timeout) -> httpx2.AsyncClient:
    """A client with the SDK's own limits. Where the environment names a proxy (HTTPS_PROXY) it is asked as the SDK does."""
    if PROXIES & getproxies().keys():
        return anthropic.DefaultAsyncHttpxClient(timeout=timeout)
    return anthropic.DefaultAsyncHttpxClient(timeout=timeout, transport=Transport())


async def _within(
    waiting: "asyncio.Future[None]", seconds: float | None, error: type[Exception]
) -> None:
    if seconds is None:
        await waiting
        return
    timer = asyncio.get_running_loop().call_later(seconds, _expire, waiting, error)
    try:
        await waiting
    finally:
        timer.cancel()


def _expire(waiting: "asyncio.Future[None]", error: type[Exception]) -> None:
    if not waiting.done():
        waiting.set_exception(error("nothing came in time"))


def _wake(waiting: "asyncio.Future[None] | None") -> None:
    if waiting is not None and not waiting.done():
        waiting.set_result(None)
