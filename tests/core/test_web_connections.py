"""The web server in this process, with an application of a few lines, and clients that do what no browser does."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from apps.core.http import connections, websockets
from apps.core.http import server as serving
from apps.core.http.server import WebServer
from apps.core.http.sharing import bound
from tests.waiting import PATIENCE, until

UPGRADE = (
    "GET /echo HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


class Application:
    """Echoes bodies with the headers they came with; /early answers before it has read; /stream never ends; a websocket sends
    without end what nobody may read."""

    def __init__(self) -> None:
        self.left: list[str] = []  # paths of streams and sockets whose client has gone
        self.headers: list[tuple[bytes, bytes]] = []
        self.stopped = False
        self.tidied = asyncio.Event()
        self.requests = 0

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.lifespan(receive, send)
        elif scope["type"] == "websocket":
            await self.websocket(scope, receive, send)
        else:
            self.requests += 1
            await self.http(scope, receive, send)

    async def lifespan(self, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                self.stopped = True
                return

    async def http(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        body = b""
        if scope["path"] == "/echo":
            more = True
            while more:
                message = await receive()
                body += message.get("body", b"")
                more = message.get("more_body", False)
        self.headers = scope["headers"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        if scope["path"] == "/stream":
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})
            while (await receive())["type"] != "http.disconnect":
                pass
            self.left.append("/stream")
            return
        await send({"type": "http.response.body", "body": b"[" + body + b"]"})
        if scope["path"] == "/slow":
            await self.tidied.wait()

    async def websocket(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        if scope["path"] == "/flood":
            sending = asyncio.ensure_future(self.flood(send))
            await asyncio.sleep(0)
            await send({"type": "websocket.close", "code": 4401})
            sending.cancel()
        while (await receive())["type"] != "websocket.disconnect":
            pass
        if scope["path"] == "/late":
            await send({"type": "websocket.close", "code": 4401})
        self.left.append(scope["path"])

    async def flood(self, send: Any) -> None:
        while True:
            await send({"type": "websocket.send", "text": "x" * 100_000})


@asynccontextmanager
async def served(application: Application) -> AsyncIterator[tuple[WebServer, int]]:
    """The server on a free port; it is stopped with the block, in order."""
    listening = bound("127.0.0.1", 0, shared=False)
    ready = asyncio.Event()
    server = WebServer(application, ready=ready.set)
    running = asyncio.ensure_future(server.serve([listening]))
    async with asyncio.timeout(PATIENCE):
        await ready.wait()
    try:
        yield server, listening.getsockname()[1]
    finally:
        server.should_exit = True
        async with asyncio.timeout(PATIENCE):
            await running


async def exchange(port: int, *parts: str | bytes) -> bytes:
    """Returns what comes back for these bytes until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part.encode() if isinstance(part, str) else part)
            await writer.drain()
            await asyncio.sleep(0.02)  # so that it comes by itself
        async with asyncio.timeout(PATIENCE):
            return await reader.read()
    finally:
        writer.close()


HEAD = "POST /echo HTTP/1.1\r\nHost: x\r\n"
CHUNKED = f"{HEAD}Transfer-Encoding: chunked\r\n\r\n"


async def test_headers_behind_a_body_are_dropped() -> None:
    application = Application()
    async with served(application) as (_, port):
        trailer = "3\r\nabc\r\n0\r\nX-Forwarded-For: 6.6.6.6\r\n\r\n"
        close = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        received = await exchange(
            port, CHUNKED.replace("Host: x", "Host: x\r\nX-Own: 1"), trailer, close
        )
        assert b"[abc]" in received
        assert application.requests == 2
    application = Application()
    async with served(application) as (_, port):
        received = await exchange(port, CHUNKED, "3\r\nabc\r\n0\r\n", "X-Long: 1\r\n" * 10_000)
        assert b"200" not in received
        assert b"x-long" not in dict(application.headers)


async def test_a_head_without_end_gets_its_answer() -> None:
    async with served(Application()) as (_, port):
        received = await exchange(port, f"{HEAD}X-Long: ", "x" * 70_000)
        assert received.startswith(b"HTTP/1.1 431 ")


async def test_of_requests_that_come_together_few_wait() -> None:
    application = Application()
    async with served(application) as (_, port):
        request = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        received = await exchange(
            port, request * 7 + request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
        )
        assert received.count(b"HTTP/1.1 200 ") == 8
        with suppress(ConnectionError):
            await exchange(port, request * 5_000)
        assert application.requests <= 8 + 1 + connections.REQUESTS_WAITING


async def test_one_who_says_nothing_is_let_go() -> None:
    async with served(Application()) as (server, port):
        server.config.timeout_keep_alive = 0.2  # type: ignore[assignment]
        for said in ((), (HEAD,), (f"{HEAD}Content-Length: 9\r\n\r\n123",)):
            assert b"200" not in await exchange(port, *said)
        assert not server.server_state.connections


async def test_an_answer_before_the_body_is_read_arrives_also_where_the_connection_ends_with_it() -> (
    None
):
    async with served(Application()) as (_, port):
        head = f"POST /early HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {5_000_000}\r\n\r\n"
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head.encode())
        for _ in range(50):
            await asyncio.sleep(0)
            writer.write(b"x" * 100_000)
            await writer.drain()
        async with asyncio.timeout(PATIENCE):
            assert (await reader.read()).endswith(b"[]\r\n0\r\n\r\n")
        writer.close()


async def test_a_wish_for_http_2_is_passed_over() -> None:
    wish = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    async with served(Application()) as (_, port):
        request = f"{HEAD}{wish}Content-Length: 9\r\n\r\n"
        close = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        both = (f"{request}123456789{close}",), (request, "1234", f"56789{close}")
        ends = request.replace("Upgrade,", "close, Upgrade,")
        assert b"[123456789]" in await exchange(port, f"{ends}123456789{close}")
        for parts in both:
            received = await exchange(port, *parts)
            assert b"[123456789]" in received
            assert received.count(b"HTTP/1.1 200 ") == 2
        assert b" 400 " in await exchange(port, "CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n")


async def test_each_request_under_way_learns_that_its_client_has_gone() -> None:
    application = Application()
    async with served(application) as (_, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        stream = b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"
        writer.write(stream)
        await until(lambda: application.requests)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await writer.drain()
        writer.close()
        await until(lambda: application.left == ["/stream"])
        assert b" 101 " not in await exchange(port, stream.decode() + UPGRADE + "\r\n")


@pytest.mark.parametrize(
    ("more", "status"),
    [
        (f"Cookie: {'x' * 9_000}\r\n", b"431"),
        ("".join(f"X-{number}: 1\r\n" for number in range(130)), b"431"),
        ("Content-Length: 5\r\n", b"400"),
    ],
)
async def test_a_websocket_that_cannot_begin_is_answered(more: str, status: bytes) -> None:
    async with served(Application()) as (server, port):
        received = await exchange(port, f"{UPGRADE}{more}\r\n")
        assert received.startswith(b"HTTP/1.1 " + status)
        assert not server.server_state.connections


async def test_what_comes_before_a_websocket_has_begun_leaves_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with served(Application()) as (_, port):
        await exchange(port, f"{UPGRADE}\r\n".encode() + b"\xff\xff\xff\xff")
        await exchange(port, f"{UPGRADE}\r\n", b"\xff\xff\xff\xff")
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_one_who_does_not_read_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websockets, "ANSWER_SECONDS", 0.1)
    application = Application()
    async with served(application) as (server, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(UPGRADE.replace("/echo", "/flood").encode() + b"\r\n")
        await until(lambda: application.left == ["/flood"])
        await until(lambda: not server.server_state.connections)
        writer.close()


@pytest.mark.parametrize("kept", ["keep-alive", "close"])
async def test_so_is_one_who_does_not_read_an_answer(kept: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "TAKING_SECONDS", 0.1)
    async with served(Application()) as (server, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        length = 30_000_000
        head = f"{HEAD}Connection: {kept}\r\nContent-Length: {length}\r\n\r\n"
        writer.write(head.encode() + b"x" * length)
        await writer.drain()
        await until(lambda: not server.server_state.connections)
        writer.close()


async def test_a_websocket_begins_on_a_connection_whose_answer_is_read_but_not_yet_tidied_up() -> None:
    application = Application()
    async with served(application) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"0\r\n\r\n")
        writer.write(f"{UPGRADE}\r\n".encode())
        assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
        application.tidied.set()
        writer.close()


async def test_a_close_to_a_client_that_has_gone_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    application = Application()
    async with served(application) as (_, port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(UPGRADE.replace("/echo", "/late").encode() + b"\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()
        await until(lambda: application.left == ["/late"])
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_text_that_is_none_closes_with_its_reason_and_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken, close = b"\x81\x81\0\0\0\0\xff", b"\x88\x82\0\0\0\0\x03\xe8"
    async with served(Application()) as (_, port):
        for sent, code in ((broken, 1007), (broken + close, 1000)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"{UPGRADE}\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            writer.write(sent)
            assert (await reader.readexactly(4))[2:] == code.to_bytes(2, "big")
            writer.close()
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def test_what_is_no_request_is_not_answered_in_the_middle_of_an_answer() -> None:
    async with served(Application()) as (_, port):
        received = await exchange(port, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n", "\0\1\2")
        assert b"begun" in received
        assert b" 400 " not in received


async def test_an_answer_to_one_who_waits_to_send_its_body_ends_the_connection() -> None:
    async with served(Application()) as (_, port):
        head = "POST /early HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: 100-continue\r\n"
        assert b"[]" in await exchange(port, f"{head}Content-Length: 5\r\n\r\n")


async def test_the_stop_reaches_all_whatever_state_they_are_in(caplog: pytest.LogCaptureFixture) -> None:
    application = Application()
    async with served(application) as (_, port):
        open_ = await asyncio.open_connection("127.0.0.1", port)
        open_[1].write(f"{UPGRADE}\r\n".encode())
        await open_[0].readuntil(b"\r\n\r\n")
        streaming = await asyncio.open_connection("127.0.0.1", port)
        streaming[1].write(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
        await streaming[0].readuntil(b"begun")
        half = await asyncio.open_connection("127.0.0.1", port)
        half[1].write(UPGRADE.encode())
        await asyncio.sleep(0)
    assert (await open_[0].read())[:4] == b"\x88\x02\x03\xf4"  # closed as of a restart
    await streaming[0].read()
    assert application.stopped
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
    for _, writer in (open_, streaming, half):
        writer.close()


def test_small_answers_are_not_delayed() -> None:
    with bound("127.0.0.1", 0, shared=False) as listening:
        assert listening.proto == socket.IPPROTO_TCP
