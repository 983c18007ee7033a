"""Processes and a model server of a benchmark's own on the loopback interface, and programs that talk to them."""

import asyncio
import base64
import http.client
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import ProtocolTypeRouter
from django.conf import settings

Block = dict[str, Any]
PREPARE = """
from apps.accounts.models import Preferences, User
from apps.accounts.services import token_create
user = User.objects.create_user("benchmark", password=None)
Preferences.objects.create(user=user)
print("token", token_create(user=user, name="benchmark", scopes=["read", "write"])[1])
"""
START_SECONDS = 60
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA


@dataclass(frozen=True, slots=True)
class WebProcess:
    """A running server over the data in `folder`; `token` is a bearer token of a user ("" where it has none)."""

    port: int
    folder: Path
    token: str
    pid: int

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    @property
    def log(self) -> str:
        return log_of(self.folder).read_text()


def log_of(folder: Path) -> Path:
    return folder / "server.log"


@contextmanager
def izzy_process(**environment: str) -> Iterator[WebProcess]:
    """Izzy under uvicorn over an empty data directory, with one user; `environment` is added to its own."""
    with tempfile.TemporaryDirectory(prefix="izzy-benchmark-") as folder:
        own = environment_of(Path(folder), environment)
        for arguments in (("migrate", "-v0"), ("shell", "-v0", "-c", PREPARE)):
            command = [sys.executable, "manage.py", *arguments]
            done = subprocess.run(
                command, cwd=settings.BASE_DIR, env=own, capture_output=True, text=True, check=True
            )
        token = next(line.split()[1] for line in done.stdout.splitlines() if line.startswith("token "))
        with web_process(Path(folder), token=token, **environment) as process:
            yield process


@contextmanager
def web_process(
    folder: Path, application: str = "izzysite.asgi:application", *, token: str = "", **environment: str
) -> Iterator[WebProcess]:
    """An application under uvicorn on a free port, throttling off. Raises RuntimeError where it does not start."""
    port = free_port()
    command = ["-m", "uvicorn", "--log-level=warning", f"--port={port}", application]
    with background_process(command, folder, **environment) as process:
        until = time.monotonic() + START_SECONDS
        while True:
            with suppress(OSError):
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            if time.monotonic() > until or process.poll() is not None:
                raise RuntimeError(f"the server did not start:\n{log_of(folder).read_text()}")
            time.sleep(0.05)
        yield WebProcess(port, folder, token, process.pid)


@contextmanager
def background_process(
    arguments: list[str], folder: Path, **environment: str
) -> Iterator["subprocess.Popen[bytes]"]:
    """A Python over the data in `folder`, ended with the block; what it prints goes into the folder's log."""
    with log_of(folder).open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=settings.BASE_DIR,
            env=environment_of(folder, environment),
            stdout=output,
            stderr=output,
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(30)


def free_port() -> int:
    """A port of the loopback interface on which nobody listens."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def environment_of(folder: Path, more: dict[str, str]) -> dict[str, str]:
    """This process's environment without what would point the server elsewhere; the encoder stays."""
    names = ("IZZY_", "ANTHROPIC_", "REDIS_URL", "DATABASE_URL")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(names) or name == "IZZY_EMBEDDER"
    }
    own = {"IZZY_ENV_FILE": "", "DJANGO_SETTINGS_MODULE": "izzysite.settings", "IZZY_THROTTLE": "off"}
    return kept | own | {"IZZY_DATA_DIR": str(folder)} | more


@contextmanager
def connected(web: WebProcess) -> Iterator[Callable[..., bytes]]:
    """A function that sends a request over one connection that is kept open: GET a path, or POST a body to it."""
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)
    headers = web.headers | {"Content-Type": "application/json"}

    def ask(path: str, body: dict[str, object] | None = None) -> bytes:
        packed = None if body is None else json.dumps(body)
        connection.request("GET" if packed is None else "POST", path, packed, headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}: {content[:300]!r}")
        return content

    with closing(connection):
        yield ask


@asynccontextmanager
async def model_server(
    answer: Callable[[dict[str, Any]], list[Block]],
) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that speaks as much of the Messages API as a turn needs; yields its address and all requests' bodies.

    `answer` gives the content blocks for a request's JSON. A text may be an asynchronous iterator of pieces, which are
    sent as they come.
    """
    bodies: list[bytes] = []

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled when the loop ends: asyncio would log that nobody asks for the outcome.
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while True:  # the connection is kept open
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                body = await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
                bodies.append(body)
                request = json.loads(body)
                writer.write(HEAD)
                async for event in _events(request["model"], answer(request)):
                    data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
                    writer.write(b"%x\r\n%s\r\n" % (len(data), data))
                    await writer.drain()
                writer.write(b"0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(reply, "127.0.0.1", 0, limit=2**26, backlog=1024)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", bodies
    finally:
        server.close()


async def _events(model: str, blocks: list[Block]) -> AsyncIterator[dict[str, Any]]:
    message = {
        "id": "msg_benchmark",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
    }
    usage = {"input_tokens": 1, "output_tokens": 1}
    yield {
        "type": "message_start",
        "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage},
    }
    for index, block in enumerate(blocks):
        empty: Block = {"text": ""} if block["type"] == "text" else {"input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": block | empty}
        async for delta in _deltas(block):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 9},
    }
    yield {"type": "message_stop"}


async def _deltas(block: Block) -> AsyncIterator[dict[str, str]]:
    if block["type"] == "tool_use":
        yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    elif isinstance(block["text"], str):
        yield {"type": "text_delta", "text": block["text"]}
    else:
        async for piece in block["text"]:
            yield {"type": "text_delta", "text": piece}


class Echo(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels is untyped
    """The floor of the chat benchmark: a consumer that sends back what it gets, and nothing else."""

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self.send(text_data=text_data)


echo = ProtocolTypeRouter({"websocket": Echo.as_asgi()})


class WebSocket:
    """A small websocket client (RFC 6455): text frames, client to server masked, no extensions. `receive` gives the next text message, None when the server has closed."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.closed = 0  # the code with which the server has closed

    @classmethod
    async def connect(
        cls, host: str, port: int, path: str, headers: dict[str, str] | None = None
    ) -> Self:
        """Opens a connection; ConnectionError where the server refuses the handshake."""
        reader, writer = await asyncio.open_connection(host, port)
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {host}:{port}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Version: 13",
            *(f"{name}: {value}" for name, value in (headers or {}).items()),
        ]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        status = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0]
        if b" 101 " not in status:
            raise ConnectionError(status.decode())
        return cls(reader, writer)

    async def send(self, text: str) -> None:
        self._write(TEXT, text.encode())
        await self._writer.drain()

    async def receive(self) -> str | None:
        message = b""
        while True:
            opcode, final, data = await self._frame()
            if opcode == CLOSE:
                self.closed = int.from_bytes(data[:2], "big")
                self._write(CLOSE, data[:2])
                return None
            if opcode == PING:
                self._write(PONG, data)
            elif opcode != PONG:
                message += data
                if final:
                    return message.decode()

    def close(self) -> None:
        self._writer.close()

    async def _frame(self) -> tuple[int, bool, bytes]:
        first, second = await self._reader.readexactly(2)
        length = second & 0x7F
        if length == 126:
            (length,) = struct.unpack(">H", await self._reader.readexactly(2))
        elif length == 127:
            (length,) = struct.unpack(">Q", await self._reader.readexactly(8))
        return first & 0x0F, bool(first & 0x80), await self._reader.readexactly(length)

    def _write(self, opcode: int, data: bytes) -> None:
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", 0x80 | opcode, 0x80 | size)
        elif size < 65536:
            head = struct.pack(">BBH", 0x80 | opcode, 0x80 | 126, size)
        else:
            head = struct.pack(">BBQ", 0x80 | opcode, 0x80 | 127, size)
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))
        self._writer.write(head + mask + masked)
