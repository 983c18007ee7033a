"""The only way out of a sandbox: an HTTP proxy on a listener that was made inside the sandbox's network namespace.

It checks the host's name against what was approved, resolves the name itself, refuses what is not public, and connects to
the very address that it checked. What it refuses it explains: most HTTP clients show the reason phrase of an answer to
CONNECT, and all of them the body of any other.
"""

import asyncio
import contextlib
import re
import socket
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from apps.core.errors import InvalidInput, IzzyError
from apps.core.http.addresses import (
    AddressRefused,
    PrivateHost,
    canonical_host,
    resolve_public,
)

ANY_PUBLIC = "*"
USUAL_PORTS = frozenset({80, 443})
HOP_BY_HOP = frozenset(
    {"connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "upgrade"}
)
HEAD_BYTES = 65536
HEAD_SECONDS = 30.0
CONNECT_SECONDS = 15.0
IDLE_SECONDS = 120.0
PIECE = 65536
MOST_CONNECTIONS = 64
PIP_HOST = "pip.izzy.internal"
PIP_BYTES = 20_000

Install = Callable[[str], Awaitable[str]]
"""Text of requirements -> what to tell; raises IzzyError."""


class AllowList:
    """Names with a port each, or 80 and 443 where none is named. It grows while the sandbox of a build runs; the entry `*`
    permits any host that is public."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._rules: dict[tuple[str, int | None], None] = {}  # in the order in which they came
        self._any = False
        self.add(entries)

    def add(self, entries: Iterable[str]) -> None:
        """From `name` or `name:port`. Raises InvalidInput."""
        for entry in entries:
            if entry == ANY_PUBLIC:
                self._any = True
                continue
            host, colon, port = entry.strip().rpartition(":")
            if not colon or port.endswith("]"):
                host, port = entry.strip(), ""
            try:
                name = canonical_host(host)
                number = int(port) if port.isascii() and port.isdigit() else 0
            except (AddressRefused, ValueError):
                raise InvalidInput(
                    f"{entry[:100]!r} is no host. Give names such as api.example.org."
                ) from None
            if colon and port and not 0 < number < 65536:
                raise InvalidInput(f"{entry[:100]!r} has no valid port.", field="hosts")
            self._rules[name, number or None] = None

    def permits(self, host: str, port: int) -> bool:
        """`host` in its canonical spelling."""
        if (host, port) in self._rules:
            return True
        return port in USUAL_PORTS and (self._any or (host, None) in self._rules)

    def __str__(self) -> str:
        shown = [host if port is None else f"{host}:{port}" for host, port in self._rules]
        return ", ".join(shown) or "none"


class Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Head:
    """`forwarded` is what the server is to get instead of the client's head; empty for CONNECT."""

    method: str
    host: str
    port: int
    length: int
    forwarded: bytes


def parse_head(data: bytes) -> Head:
    """Raises Refused. Only `CONNECT host:port` and `METHOD http://host[:port]/path` are understood."""
    text = data.decode("latin-1")
    if any(not char.isprintable() and char != "\t" for char in text.replace("\r\n", "")):
        raise Refused(400, "Control characters are not understood.")
    try:
        first, *rest = text.split("\r\n")
        method, target, version = first.split(" ")
    except ValueError:
        raise Refused(400, "That is no HTTP request.") from None
    if not version.startswith("HTTP/1.") or not method.isalpha():
        raise Refused(400, "Only HTTP/1.1 is understood.")
    if method == "CONNECT":
        host, port = _authority(target, 443)
        return Head(method, host, port, 0, b"")
    if not target.lower().startswith("http://"):
        raise Refused(400, "Give the whole http:// address; for https use CONNECT.")
    return _plain(method, target, rest)


def _plain(method: str, target: str, lines: list[str]) -> Head:
    try:
        authority, path, query = urlsplit(target)[1:4]
    except ValueError:  # brackets that hold no address
        raise Refused(400, "The address is malformed.") from None
    host, port = _authority(authority, 80)
    path = (path or "/") + (f"?{query}" if query else "")
    headers = []
    for line in filter(None, lines):
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise Refused(400, "A header is malformed.")
        headers.append((name, value.strip()))
    kept = [(name, value) for name, value in headers if name.lower() not in HOP_BY_HOP | {"host"}]
    lengths = [value for name, value in headers if name.lower() == "content-length"]
    length = int(lengths[0]) if lengths and re.fullmatch(r"[0-9]{1,15}", lengths[0]) else 0
    shown = [("Host", authority), *kept, ("Connection", "close")]
    text = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in shown)
    return Head(method, host, port, length, f"{text}\r\n".encode("latin-1"))


def _authority(text: str, usual: int) -> tuple[str, int]:
    """No user name: `http://allowed.example@127.0.0.1/` names 127.0.0.1."""
    if "@" in text or not text:
        raise Refused(400, "The address must not hold a user name.")
    host, colon, port = text.rpartition(":")
    if not colon or port.endswith("]"):
        return text, usual
    if not port.isascii() or not port.isdigit() or not host:
        raise Refused(400, "The port is malformed.")
    return host, int(port[:6])


class EgressProxy:
    """`used` are the hosts that were reached. `ask` completes the sentence of a refusal."""

    def __init__(
        self,
        hosts: Iterable[str],
        *,
        transfer_bytes: int,
        ask: str = "",
        private: Collection[PrivateHost] = (),
        install: Install | None = None,
    ) -> None:
        self.used: set[str] = set()
        self._allowed = AllowList(hosts)
        self._left = transfer_bytes
        self._ask = ask
        self._private = private
        self._install = install
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def serve(self, listener: socket.socket) -> None:
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=HEAD_BYTES)

    def allow(self, hosts: Collection[str]) -> None:
        self._allowed.add(hosts)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or len(self._connections) >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._connections.add(task)
        try:
            await self._answer(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # either end has gone, or took too long
        except asyncio.CancelledError:
            pass  # by `close`; nobody awaits this task
        finally:
            self._connections.discard(task)
            writer.transport.abort() if writer.transport.get_write_buffer_size() == 0 else writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(HEAD_SECONDS):
            data = await reader.readuntil(b"\r\n\r\n")
        try:
            head = parse_head(data[:-4])
            if head.host == PIP_HOST and self._install is not None:
                await self._install_for(head, reader, writer)
                return
            there = await self._connect(head)
        except Refused as error:
            await _say(writer, error.status, str(error))
        else:
            await self._exchange(head, (reader, writer), there)

    async def _connect(self, head: Head) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Raises Refused."""
        try:
            name = canonical_host(head.host)
        except IzzyError as error:
            raise Refused(403, f"{head.host[:100]} is not allowed: {error.message}") from None
        if not self._allowed.permits(name, head.port):
            message = f"{name}:{head.port} is not allowed (allowed: {self._allowed}). {self._ask}"
            raise Refused(403, message.strip())
        if self._left <= 0:
            raise Refused(403, "This run has transferred as much as it may.")
        try:
            addresses = await resolve_public(name, head.port, also=self._private)
        except IzzyError as error:
            raise Refused(403 if error.code == "address_refused" else 502, error.message) from None
        problem = ""
        for found in addresses:
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    there = await asyncio.open_connection(found.address, found.port)
            except (OSError, TimeoutError) as error:
                problem = str(error) or "it does not answer"
            else:
                self.used.add(name)
                return there
        raise Refused(502, f"{name} cannot be reached: {problem}.")

    async def _exchange(
        self,
        head: Head,
        here: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        there: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        try:
            if head.forwarded:
                there[1].write(head.forwarded)
            else:
                here[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            outward = asyncio.create_task(self._pump(here[0], there[1]))
            try:
                await self._pump(there[0], here[1])
            finally:
                outward.cancel()
                with contextlib.suppress(asyncio.CancelledError, OSError, TimeoutError):
                    await outward
        finally:
            there[1].transport.abort()

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while self._left > 0:
            async with asyncio.timeout(IDLE_SECONDS):
                data = await source.read(PIECE)
                if not data:
                    break
                self._left -= len(data)
                target.write(data)
                await target.drain()
        if target.can_write_eof():
            target.write_eof()

    async def _install_for(
        self, head: Head, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """`pip install` within the sandbox of a build asks here."""
        if self._install is None or head.method != "POST" or head.length > PIP_BYTES:
            raise Refused(400, f"Post at most {PIP_BYTES} bytes of requirements.")
        async with asyncio.timeout(HEAD_SECONDS):
            lines = await reader.readexactly(head.length)
        try:
            await _say(writer, 200, await self._install(lines.decode("utf-8", "replace")))
        except IzzyError as error:
            raise Refused(422, error.message) from None


async def _say(writer: asyncio.StreamWriter, status: int, message: str) -> None:
    """The message is the reason phrase too, where it fits one."""
    phrase = " ".join(message.encode("ascii", "replace").decode().split())[:300]
    body = message.encode()
    head = (
        f"HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    writer.write(head.encode("ascii", "replace") + body)
    await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
