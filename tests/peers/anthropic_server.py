"""A loopback server that speaks the Messages API, streaming included, to the real SDK.

In an async test::

    async with AnthropicServer() as server:
        server.add(reply("Hello."), reply(tool("think", {"thought": "hm"})), failure(529, "overloaded_error"))
        ... point ANTHROPIC_BASE_URL at server.url ...
        server.requests[0].json["messages"]; server.requests[0].body   # verbatim bytes

From synchronous code (a browser test) `with AnthropicServer.in_thread() as server:`. From the command line
`python -m tests.peers.anthropic_server --port 9999 [--script FILE] [--delay SECONDS]`, where FILE holds a JSON
list of replies: `{"parts": ["text", {"tool": "name", "input": {}}], "stop_reason": …, "status": …}`.

A reply may also be a function of the request's JSON. When the script is used up, `fallback` answers (by default
it repeats the newest user text, word by word); with `turns_only` it also answers Izzy's side jobs, whose time nothing
in a test decides. What a strict server would refuse (`anthropic_strict`) gets a 400.
"""

import argparse
import asyncio
import contextlib
import json
import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from tests.peers.anthropic_replies import Reply, cited, failure, reply, searched, text, thinking, tool
from tests.peers.anthropic_strict import problem_of

__all__ = [
    "AnthropicServer",
    "Reply",
    "cited",
    "failure",
    "is_side_job",
    "reply",
    "searched",
    "text",
    "thinking",
    "tool",
]

logger = logging.getLogger(__name__)

Answer = Reply | Callable[[dict[str, Any]], Reply]

HELD_SECONDS = 0.005
"""How often a reply that is held looks whether it may go on. No thread waits for that: it would outlive the test."""


@dataclass(frozen=True)
class Request:
    """One request as it came over the wire."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.body)
        return loaded


def echo(request: dict[str, Any]) -> Reply:
    """Repeats the last text of the newest user message."""
    content = request["messages"][-1]["content"]
    if not isinstance(content, str):
        content = next((block["text"] for block in reversed(content) if block["type"] == "text"), "")
    return reply(f"You said: {content}")


def is_side_job(request: dict[str, Any]) -> bool:
    """Whether Izzy asks this beside its turns: the small model gives titles, and who reads for memory has to call a tool."""
    return "haiku" in request["model"] or bool(request.get("tool_choice"))


@dataclass
class AnthropicServer:
    """See the module's docstring."""

    host: str = "127.0.0.1"
    port: int = 0
    fallback: Answer = echo
    turns_only: bool = False
    delay: float = 0.0
    models: list[str] = field(default_factory=lambda: ["claude-sonnet-5-5", "claude-haiku-5-5"])
    script: deque[Answer] = field(default_factory=deque)
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    broken_by_client: int = 0
    _server: asyncio.Server | None = None
    _talks: dict[asyncio.Task[Any], asyncio.StreamWriter] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The JSON of every `POST /v1/messages` so far."""
        return [seen.json for seen in self.requests if seen.path.split("?")[0] == "/v1/messages"]

    def add(self, *answers: Answer) -> None:
        """Appends to the script."""
        self.script.extend(answers)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._connection, self.host, self.port, limit=2**26, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._server is not None:
            self._server.close()
        talks = dict(self._talks)
        for task, writer in talks.items():
            writer.transport.abort()
            task.cancel()
        if talks:
            await asyncio.wait(talks)

    @classmethod
    @contextlib.contextmanager
    def in_thread(cls, **options: Any) -> Iterator[Self]:
        """Runs the server in a thread with a loop of its own."""
        server = cls(**options)
        started, stop = threading.Event(), asyncio.Event()
        loops: list[asyncio.AbstractEventLoop] = []

        async def main() -> None:
            loops.append(asyncio.get_running_loop())
            async with server:
                started.set()
                await stop.wait()

        thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
        thread.start()
        started.wait()
        try:
            yield server
        finally:
            loops[0].call_soon_threadsafe(stop.set)
            thread.join(timeout=5)

    def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A task of our own: asyncio logs an error for one of its own that is cancelled."""
        task = asyncio.ensure_future(self._talk(reader, writer))
        self._talks[task] = writer
        task.add_done_callback(self._talked)

    def _talked(self, task: asyncio.Task[None]) -> None:
        del self._talks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a reply could not be given", exc_info=error)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while (request := await _read_request(reader)) is not None:
                self.requests.append(request)
                await self._answer(request, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.broken_by_client += 1
        finally:
            writer.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        path = request.path.split("?")[0]
        if path == "/v1/messages":
            await self._message(request, writer)
        elif path == "/v1/messages/count_tokens":
            await _send(writer, 200, {"input_tokens": len(request.body) // 4})
        elif path == "/v1/models":
            data = [self._model(name) for name in self.models]
            await _send(
                writer, 200, {"data": data, "has_more": False, "first_id": None, "last_id": None}
            )
        elif path.removeprefix("/v1/models/") in self.models:
            await _send(writer, 200, self._model(path.removeprefix("/v1/models/")))
        else:
            await _send(writer, 404, failure(404, "not_found_error", f"no {path}").error())

    def _model(self, name: str) -> dict[str, Any]:
        return {"type": "model", "id": name, "display_name": name, "created_at": "2026-01-01T00:00:00Z"}

    async def _message(self, request: Request, writer: asyncio.StreamWriter) -> None:
        wanted = request.json
        if problem := problem_of(wanted):
            await _send(writer, 400, failure(400, "invalid_request_error", problem).error())
            return
        scripted = self.script and not (self.turns_only and is_side_job(wanted))
        answer = self.script.popleft() if scripted else self.fallback
        given = answer if isinstance(answer, Reply) else answer(wanted)
        if given.body is not None:
            await _send_bytes(writer, given.status, given.body, given.headers)
        elif given.status != 200:
            await _send(writer, given.status, given.error(), given.headers)
        elif wanted.get("stream"):
            await self._stream(given, wanted, writer)
        else:
            await _send(
                writer, 200, given.message(wanted["model"], len(request.body) // 4), given.headers
            )

    async def _stream(self, given: Reply, wanted: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        head = {
            "content-type": "text/event-stream",
            "transfer-encoding": "chunked",
            "request-id": "req_peer",
        }
        writer.write(_head(200, head | given.headers))
        size = len(json.dumps(wanted)) // 4
        async for event in self._paced(given, wanted["model"], size):
            if event is None:
                writer.transport.abort()
                return
            writer.write(_chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def _paced(self, given: Reply, model: str, size: int) -> AsyncIterator[dict[str, Any] | None]:
        """The reply's events with its pauses and faults; None means: break the connection."""
        for count, event in enumerate([*given.events(model, size), None]):
            while count == given.hold_after and not given.release.is_set():  # noqa: ASYNC110  set in any thread
                await asyncio.sleep(HELD_SECONDS)
            if count == given.cut_after:
                if given.cut == "reset":
                    yield None
                return
            if count == given.error_after:
                yield given.error()
                return
            if event is None:  # the end of the body is what is left
                return
            if given.delay or self.delay:
                await asyncio.sleep(given.delay or self.delay)
            yield event


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, path, headers, body)


def _head(status: int, headers: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status} -", *(f"{name}: {value}" for name, value in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def _send(
    writer: asyncio.StreamWriter,
    status: int,
    body: dict[str, Any],
    headers: dict[str, str] | None = None,
) -> None:
    await _send_bytes(
        writer, status, json.dumps(body).encode(), {"content-type": "application/json"} | (headers or {})
    )


async def _send_bytes(
    writer: asyncio.StreamWriter, status: int, body: bytes, headers: dict[str, str]
) -> None:
    writer.write(_head(status, headers | {"content-length": str(len(body))}) + body)
    await writer.drain()


def load_script(file: Path) -> list[Reply]:
    """The replies of a JSON script (see the module's docstring)."""
    replies = []
    for entry in json.loads(file.read_text(encoding="utf-8")):
        parts = [
            part if isinstance(part, str) else tool(part["tool"], part.get("input"))
            for part in entry.pop("parts", [])
        ]
        replies.append(reply(*parts, **entry))
    return replies


async def _serve_forever(port: int, script: list[Reply], delay: float) -> None:
    async with AnthropicServer(port=port, delay=delay) as server:
        server.add(*script)
        print(server.url, flush=True)
        await asyncio.Event().wait()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="A loopback Messages API server.")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path)
    parser.add_argument("--delay", type=float, default=0.03, help="seconds between two streamed events")
    options = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(
            _serve_forever(
                options.port, load_script(options.script) if options.script else [], options.delay
            )
        )


if __name__ == "__main__":
    main()
