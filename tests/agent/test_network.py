"""The connections over which a model's answers come, against a real server."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import httpcore2
import httpx2
import pytest

from apps.agent.model import network
from apps.agent.model.network import READ_AHEAD, Connection, Transport, http_client
from tests.waiting import PATIENCE

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s"


@asynccontextmanager
async def serving(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The address of a server; a handler gets each connection and reads its requests itself."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    scheme = "http" if context is None else "https"
    try:
        yield f"{scheme}://localhost:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def client(transport: Transport | None = None, *, read: float = PATIENCE) -> httpx2.AsyncClient:
    limits = httpx2.Timeout(PATIENCE, read=read)
    return httpx2.AsyncClient(transport=transport or Transport(), timeout=limits)


async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK % (5, b"hello"))


async def test_a_connection_is_used_again() -> None:
    connections = []

    async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        await hello(reader, writer)

    async with serving(counted) as url, client() as http:
        for _ in range(3):
            assert (await http.get(url)).text == "hello"
    assert len(connections) == 1


async def test_it_carries_what_the_client_of_the_model_asks() -> None:
    async with serving(hello) as url, http_client(httpx2.Timeout(PATIENCE)) as http:
        response = await http.get(url)
    assert isinstance(response.extensions["network_stream"], Connection)


async def test_one_that_the_server_closed_meanwhile_is_not() -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK % (5, b"hello"))
        await writer.drain()

    async with serving(once) as url, client() as http:
        for _ in range(3):
            assert (await http.get(url)).text == "hello"
            await asyncio.sleep(0.05)  # its end is on the way


async def test_more_than_is_read_ahead_comes_whole_to_a_slow_reader() -> None:
    size = 8 * READ_AHEAD
    body = bytes(number % 251 for number in range(size))

    async def much(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK % (size, body))
        await writer.drain()

    received = b""
    async with serving(much) as url, client() as http, http.stream("GET", url) as response:
        async for part in response.aiter_raw():
            received += part
            await asyncio.sleep(0)
    assert received == body


async def test_a_long_request_is_sent_whole() -> None:
    body = b"x" * 5_000_000
    seen = []

    async def takes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        seen.append(await reader.readexactly(len(body)))
        writer.write(OK % (2, b"ok"))

    async with serving(takes) as url, client() as http:
        assert (await http.post(url, content=body)).text == "ok"
    assert seen == [body]


async def test_silence_is_a_timeout_of_reading() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(silent) as url, client(read=0.05) as http:
        with pytest.raises(httpx2.ReadTimeout):
            await http.get(url)


async def test_silence_counts_from_what_came_last() -> None:
    loop = asyncio.get_running_loop()
    connection = Connection()
    reading = asyncio.create_task(connection.read(9, timeout=PATIENCE))
    await asyncio.sleep(0)
    begun = connection._timer
    assert begun is not None
    connection.data_received(b"ab")
    assert await reading == b"ab"
    reading = asyncio.create_task(connection.read(9, timeout=PATIENCE))
    await asyncio.sleep(0)
    assert connection._timer is begun
    begun.cancel()
    connection._look(loop)  # the first one's time is up, not the second's
    assert connection._timer is not None
    assert connection._timer.when() > begun.when()
    connection._timer.cancel()
    connection._late = loop.time()
    connection._look(loop)
    with pytest.raises(httpcore2.ReadTimeout):
        await reading


async def test_an_answer_that_breaks_off_is_an_error_of_reading() -> None:
    async def breaks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")
        await writer.drain()
        writer.transport.abort()

    async with serving(breaks) as url, client() as http:
        with pytest.raises((httpx2.ReadError, httpx2.RemoteProtocolError)):
            await http.get(url)


async def test_where_nobody_listens_there_is_no_connection() -> None:
    async with serving(hello) as url:
        pass
    async with client() as http:
        with pytest.raises(httpx2.ConnectError):
            await http.get(url)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost that nobody has signed, with its key in the same file."""
    file = tmp_path_factory.mktemp("tls") / "localhost.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made = subprocess.run(
        ["openssl", "req", "-x509", *key, "-keyout", "-", "-days", "2", *name],
        capture_output=True,
        check=True,
    )
    file.write_bytes(made.stdout)
    return file


async def test_tls_is_spoken_with_whom_one_trusts(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    async with serving(hello, context) as url:
        async with client() as http:
            with pytest.raises(httpx2.ConnectError, match=r"(?i)certificate"):
                await http.get(url)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        monkeypatch.setattr(network, "_certificates", httpx2.create_ssl_context)  # another process's
        async with client(Transport()) as http:
            for _ in range(2):
                assert (await http.get(url)).text == "hello"


async def test_a_proxy_that_the_environment_names_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0])
        writer.write(OK % (5, b"proxy"))
        await writer.drain()

    async with serving(proxy) as url:
        monkeypatch.setenv("HTTP_PROXY", url)
        async with http_client(httpx2.Timeout(PATIENCE)) as http:
            assert (await http.get("http://models.invalid/v1")).text == "proxy"
    assert asked == [b"GET http://models.invalid/v1 HTTP/1.1"]
