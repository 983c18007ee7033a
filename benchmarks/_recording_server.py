"""A model server that keeps the bytes of every request and answers with tool calls and text in turn."""

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Self

Block = dict[str, Any]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


class RecordingModelServer:
    """`answer` gives the content blocks for a request's JSON; `bodies` are the requests, byte for byte."""

    def __init__(self, answer: Callable[[dict[str, Any]], list[Block]]) -> None:
        self.answer = answer
        self.bodies: list[bytes] = []
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._reply, "127.0.0.1", 0, limit=2**26)
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._server is not None:
            self._server.close()

    async def _reply(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            body = await reader.readexactly(int(head.split("content-length:")[1].split("\r\n")[0]))
            self.bodies.append(body)
            request = json.loads(body)
            writer.write(HEAD)
            for event in _events(request["model"], self.answer(request)):
                writer.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            await writer.drain()
        writer.close()


def _events(model: str, blocks: list[Block]) -> Iterator[dict[str, Any]]:
    message = {"id": "msg_benchmark", "type": "message", "role": "assistant", "model": model, "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    yield {
        "type": "message_start",
        "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage},
    }
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": reason, "stop_sequence": None},
        "usage": {"output_tokens": 9},
    }
    yield {"type": "message_stop"}
