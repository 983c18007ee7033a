"""A model server that streams words carrying the time they were sent at."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Self

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


class TimedModelServer:
    """Speaks as much of the Messages API as a chat turn needs: one answer of `deltas` words, `pause` seconds apart.

    Each word is `@<nanoseconds of time.perf_counter_ns> `.
    """

    def __init__(self, deltas: int, pause: float) -> None:
        self.deltas = deltas
        self.pause = pause
        self.requests = 0
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0, limit=2**24)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._server is not None:
            self._server.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.split("content-length:")[1].split("\r\n")[0])
            model = json.loads(await reader.readexactly(length))["model"]
            self.requests += 1
            writer.write(HEAD)
            for event in _opening(model):
                writer.write(_server_sent(event))
            for _ in range(self.deltas):
                await asyncio.sleep(self.pause)
                writer.write(_server_sent(_delta(f"@{time.perf_counter_ns()} ")))
                await writer.drain()
            for event in _ending(self.deltas):
                writer.write(_server_sent(event))
            await writer.drain()
        writer.close()


def _opening(model: str) -> Iterator[dict[str, Any]]:
    message: dict[str, Any] = {
        "id": "msg_benchmark",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": message}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}


def _delta(text: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


def _ending(words: int) -> Iterator[dict[str, Any]]:
    yield {"type": "content_block_stop", "index": 0}
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": words}}
    yield {"type": "message_stop"}


def _server_sent(event: dict[str, Any]) -> bytes:
    return f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
