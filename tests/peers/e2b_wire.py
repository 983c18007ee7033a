"""The loopback E2B's wire: HTTP, and the envelopes of Connect streams."""

import asyncio
import json
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True)
class Call:
    """One request."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.body or b"{}")
        return loaded


async def read_call(reader: asyncio.StreamReader) -> Call | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.split("\r\n")
    method, target, _ = first.split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    if headers.get("transfer-encoding") == "chunked":
        body = b"".join([piece async for piece in _chunks(reader)])
    else:
        body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return Call(method, parts.path, parse_qs(parts.query), headers, body)


async def _chunks(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while size := int(await reader.readline(), 16):
        yield await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readline()


def uploads(call: Call) -> list[tuple[str, bytes]]:
    """The files of an upload: `(file name, content)`."""
    kind, _, boundary = call.headers.get("content-type", "").partition("boundary=")
    if "multipart" not in kind:
        return [("", call.body)]
    found = []
    for part in call.body.split(b"--" + boundary.strip('"').encode())[1:-1]:
        head, _, data = part.partition(b"\r\n\r\n")
        name = head.decode().partition('filename="')[2].partition('"')[0]
        found.append((unquote(name), data.removesuffix(b"\r\n")))
    return found


def envelope(flags: int, message: Any) -> bytes:
    data = json.dumps(message).encode()
    return struct.pack(">BI", flags, len(data)) + data


def send_event(writer: asyncio.StreamWriter, event: dict[str, Any]) -> None:
    send_chunk(writer, envelope(0, {"event": event}))


def send_head(writer: asyncio.StreamWriter, status: int, kind: str) -> None:
    writer.write(
        f"HTTP/1.1 {status} -\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode()
    )


def send_chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def send(writer: asyncio.StreamWriter, status: int, body: Any) -> None:
    send_bytes(writer, status, b"" if body is None else json.dumps(body).encode(), "application/json")


def send_bytes(writer: asyncio.StreamWriter, status: int, body: bytes, kind: str) -> None:
    length = "" if status == 204 else f"content-type: {kind}\r\ncontent-length: {len(body)}\r\n"
    writer.write(f"HTTP/1.1 {status} -\r\n{length}\r\n".encode() + body)
