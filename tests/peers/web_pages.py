"""A loopback web server with everything that pages do, also to those who read them carelessly."""

import asyncio
import contextlib
import gzip
import io
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias

ARTICLE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Growing tomatoes &amp; beans</title>
<script>var secret = "never shown";</script></head><body><nav><a href="/">Home</a> <a href="/shop">Shop</a></nav>
<article><h1>Growing tomatoes</h1><p>Tomatoes want sun, water and a <a href="../soil?kind=loam">good soil</a>. They are planted
after the last frost and grow until autumn, when the first cold nights end the season for all of them.</p>
<h2>Watering</h2><ul><li>in the morning</li><li>at the roots</li></ul><p>A plant drinks about two litres a day in July, and
somewhat less in June. Leaves that stay wet overnight invite blight, which no gardener wants to see.</p></article></body></html>"""

LINKS = """<html><head><title>Links</title></head><body><ul><li><a href="/one">First</a></li><li><a href="two">Second</a></li>
</ul></body></html>"""

Answer: TypeAlias = Callable[["Asked", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    headers: dict[str, str]


@dataclass
class WebPages:
    """The server: `async with WebPages() as web`, then `web.url("/article")`. `asked` are the requests in order.

    `name` is the host that `url` names, so that a test can allow it: `settings.IZZY_PRIVATE_HOSTS = [web.allowed]`.
    `sent` counts the bytes of bodies that were handed to the network.
    """

    name: str = "pages.test"
    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    sent: int = 0
    port: int = 0
    _server: asyncio.Server | None = None
    _talks: set[asyncio.Task[None]] = field(default_factory=set)

    def url(self, path: str) -> str:
        """The address of a page."""
        return f"http://{self.name}:{self.port}{path}"

    @property
    def allowed(self) -> str:
        """The entry of IZZY_PRIVATE_HOSTS under which this server is reached."""
        return f"{self.name}:{self.port}=127.0.0.1"

    def page(
        self,
        path: str,
        body: bytes | str,
        content_type: str = "text/html; charset=utf-8",
        status: int = 200,
        **headers: str,
    ) -> str:
        """Answers `path` with this body; header names with underscores. Returns its address."""
        data = body.encode() if isinstance(body, str) else body
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if content_type:
            named["content-type"] = content_type

        async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
            await self.send(writer, data, status=status, **named)

        self.answers[path] = answer
        return self.url(path)

    def redirect(self, path: str, target: str, status: int = 302) -> str:
        """Answers `path` with a redirect, with a cookie on top. Returns its address."""
        return self.page(path, "", status=status, location=target, set_cookie="tracked=yes; Path=/")

    def stream(self, path: str, piece: bytes, *, every: float = 0, **headers: str) -> str:
        """Answers `path` with `piece` again and again, without end, `every` so many seconds. Returns its address."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}

        async def answer(asked: Asked, writer: asyncio.StreamWriter) -> None:
            self._head(writer, 200, {"content-type": "text/html", "connection": "close"} | named)
            while True:
                writer.write(piece)
                await writer.drain()
                self.sent += len(piece)
                await asyncio.sleep(every)

        self.answers[path] = answer
        return self.url(path)

    async def send(
        self, writer: asyncio.StreamWriter, body: bytes, *, status: int = 200, **headers: str
    ) -> None:
        """One whole response."""
        self._head(writer, status, headers | {"content-length": str(len(body)), "connection": "close"})
        writer.write(body)
        await writer.drain()
        self.sent += len(body)

    def _head(self, writer: asyncio.StreamWriter, status: int, headers: dict[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in headers.items())]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))

    @classmethod
    @contextlib.contextmanager
    def in_thread(cls, *args: Any) -> Iterator[Self]:
        """Runs the server in a thread with a loop of its own, for synchronous tests."""
        server, loop = cls(*args), asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
        try:
            yield server
        finally:
            asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(10)
            loop.call_soon_threadsafe(loop.stop)
            thread.join(5)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self.page("/article", ARTICLE)
        self.page("/links", LINKS)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        talks = set(self._talks)
        for task in talks:
            task.cancel()
        if talks:
            await asyncio.wait(talks)

    def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A task of our own: asyncio logs an error for one of its own that is cancelled."""
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._talks.add(task)
        task.add_done_callback(self._talks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with (
            contextlib.closing(writer),
            contextlib.suppress(ConnectionError, asyncio.IncompleteReadError),
        ):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.split("\r\n")
            method, path, _ = first.split(" ")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines if line)
            }
            asked = Asked(method, path, headers)
            self.asked.append(asked)
            answer = self.answers.get(path) or self.answers.get(path.partition("?")[0])
            if answer is None:
                await self.send(writer, b"nothing here", status=404)
            else:
                await answer(asked, writer)


def gzip_bomb(size: int) -> bytes:
    """`size` bytes of nothing, compressed about a thousand to one."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb") as file:
        for _ in range(size // 1_000_000):
            file.write(bytes(1_000_000))
    return out.getvalue()


def pdf(*pages: str, title: str = "") -> bytes:
    """A PDF with one line of text on each page."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = []
    for words in pages:
        number = len(objects) + 1
        stream = f"BT /F1 12 Tf 72 720 Td ({words}) Tj ET"
        font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources {font} /Contents {number + 1} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
        kids.append(f"{number} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>"
    objects.append(f"<< /Title ({title}) >>")
    out, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{len(out)}\n%%EOF\n"
    return (out + end + trailer).encode("latin-1")
