"""The real web server against what a client may send it."""

import asyncio
import json
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from apps.chat.stream.limits import CLOSE_FLOODING
from benchmarks._network import CLOSE, WebSocket
from tests.peers.site import Site
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.long

NOTES = "/api/v1/memories/"
PING, EMPTY, PIECE, REST = (bytes([head, 0x80, 0, 0, 0, 0]) for head in (0x89, 0x81, 0x01, 0x80))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"))
    yield site
    site.close()


def exchange(site: Site, request: bytes, *, silence: float = PATIENCE) -> bytes:
    """Returns what the server answers to these bytes until it closes, or falls silent for so many seconds."""
    with closing(socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE)) as connection:
        connection.sendall(request)
        received = b""
        connection.settimeout(silence)
        try:
            while part := connection.recv(65536):
                received += part
        except TimeoutError:
            pass
        return received


def test_ten_megabytes_are_413_and_the_next_request_is_answered(site: Site) -> None:
    with site.client() as client:
        for body in (b"x" * 10_000_000, b'{"content": "' + b"x" * 10_000_000 + b'"}'):
            response = client.post(NOTES, content=body, headers={"Content-Type": "application/json"})
            assert response.status_code == 413
            assert response.json()["code"] == "too_large"
        assert client.get(NOTES).status_code == 200


def test_so_are_they_in_chunks_without_a_length(site: Site) -> None:
    with site.client() as client:
        chunks = (b"x" * 100_000 for _ in range(100))
        response = client.post(NOTES, content=chunks, headers={"Content-Type": "application/json"})
        assert response.status_code == 413


def test_a_body_without_end_is_cut_off(site: Site) -> None:
    with closing(socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE)) as connection:
        connection.sendall(
            f"POST {NOTES} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
        )
        part = b"186a0\r\n" + b"x" * 100_000 + b"\r\n"
        with pytest.raises(OSError, match=r"reset|Broken pipe|aborted"):
            send_again_and_again(connection, part, 2000)


def test_a_head_without_end_is_refused(site: Site) -> None:
    received = exchange(site, b"GET /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: " + b"x" * 70_000)
    assert received.startswith(b"HTTP/1.1 431 ")
    assert b'"too_large"' in received


def test_requests_that_come_together_are_answered_in_their_order(site: Site) -> None:
    asked = [
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nConnection: {kept}\r\n\r\n"
        for path, kept in (
            ("/healthz", "keep-alive"),
            ("/sign-in/", "keep-alive"),
            ("/healthz", "close"),
        )
    ]
    received = exchange(site, "".join(asked).encode())
    answers = received.split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200", b"200", b"200"]
    assert [b'{"status": "ok"}' in answer for answer in answers] == [True, False, True]


def send_again_and_again(connection: socket.socket, part: bytes, times: int) -> None:
    for _ in range(times):
        connection.sendall(part)


def test_the_answer_to_head_has_no_body(site: Site) -> None:
    head = f"HEAD /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n\r\n".encode()
    get = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\nConnection: close\r\n\r\n".encode()
    received = exchange(site, head + get)
    answers = received.split(b"HTTP/1.1 ")[1:]
    assert [answer[:3] for answer in answers] == [b"200", b"200"]
    assert answers[0].partition(b"\r\n\r\n")[2] == b""
    assert answers[1].endswith(b'{"status": "ok"}')


@pytest.mark.parametrize(
    "request_line",
    [b"GET", b"GET /\xff\xfe HTTP/1.1", b"GET / HTTP/9.9", b"\x00\x01\x02", b"GET http://[ HTTP/1.1"],
)
def test_what_is_no_request_harms_nobody(site: Site, request_line: bytes) -> None:
    received = exchange(site, request_line + b"\r\nHost: 127.0.0.1\r\n\r\n", silence=3)
    assert b" 500 " not in received.split(b"\r\n")[0]
    with site.client() as client:
        assert client.get("/healthz").status_code == 200


def test_headers_meant_for_the_server_steer_nothing(site: Site) -> None:
    with site.client() as client:
        names = ("Daphne-Root-Path", "X-Script-Name", "X-Forwarded-Prefix", "Root-Path")
        response = client.get("/sign-in/", headers=dict.fromkeys(names, "/evil"))
        assert response.status_code in {200, 302}
        assert "/evil" not in response.text + response.headers.get("Location", "")


@pytest.mark.parametrize(
    "kind",
    ["multipart/form-data", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"],
)
def test_malformed_forms_are_answered_by_the_site(site: Site, kind: str) -> None:
    with site.client() as client:
        response = client.post(NOTES, content=b"\xff%%%--x", headers={"Content-Type": kind})
        assert response.status_code == 415
        assert set(response.json()) == {"code", "message", "extra"}


async def test_a_frame_over_the_limit_closes_that_socket_with_its_reason_and_no_other(
    site: Site,
) -> None:
    other = await WebSocket.connect("127.0.0.1", site.port, "/ws/chat/", site.headers)
    socket_ = await WebSocket.connect("127.0.0.1", site.port, "/ws/chat/", site.headers)
    await socket_.send("x" * 2_000_000)
    opcode, _, data = await socket_._frame()
    assert opcode == 0x8
    assert struct.unpack(">H", data[:2])[0] == 1009
    await other.send('{"type": "ping"}')
    assert json.loads(await other.receive() or "{}")["type"] == "pong"
    other.close()


async def test_a_flood_of_tiny_frames_is_closed_with_its_reason_and_nobody_else_notices(
    tmp_path: Path,
) -> None:
    with closing(Site(tmp_path, IZZY_THROTTLE="on")) as site:
        other = await WebSocket.connect("127.0.0.1", site.port, "/ws/chat/", site.headers)
        for frame in (PING, EMPTY, PIECE + REST):
            page = await WebSocket.connect("127.0.0.1", site.port, "/ws/chat/", site.headers)
            page._writer.write(frame * 5_000)
            opcode, data = 0, b""
            async with asyncio.timeout(PATIENCE):
                while opcode != CLOSE:
                    opcode, _, data = await page._frame()
            assert struct.unpack(">H", data) == (CLOSE_FLOODING,), frame
            page.close()
        await other.send('{"type": "ping"}')
        assert json.loads(await other.receive() or "{}")["type"] == "pong"
        other.close()


def test_a_foreign_host_is_one_line_in_the_log(site: Site) -> None:
    before = len(site.log.read_text())
    with site.client() as client:
        assert client.get("/sign-in/", headers={"Host": "evil.example"}).status_code == 400
    log = site.log.read_text()[before:]
    assert log.count("its Host header names no host of") == 1
    assert "Traceback" not in log
    assert "evil.example" not in log


@pytest.mark.skipif("TEST_DATABASE_URL" in os.environ, reason="a table of a file is put away")
def test_an_answer_that_fails_when_it_has_begun_is_broken_off_each_time(site: Site) -> None:
    """Its reader would wait for ever for the rest, and the server look after no connection any more."""
    before, table = site.log.read_text().count("Exception in ASGI application"), "memory_memoryuse"
    site.database.execute(f"ALTER TABLE {table} RENAME TO away")
    try:
        for _ in range(2):
            with site.client() as client, pytest.raises(httpx.RemoteProtocolError):
                client.get("/api/v1/export/")
    finally:
        site.database.execute(f"ALTER TABLE away RENAME TO {table}")
    eventually(lambda: site.log.read_text().count("Exception in ASGI application") == before + 2)
