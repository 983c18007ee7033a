"""The other end of the SDK's HTTP client in offline mode: answers `POST /v1/messages` within this process."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any
from uuid import uuid4

import httpx2

from apps.agent.endpoint import OFFLINE
from apps.agent.offline.responder import Blocks, respond

WORD_SECONDS = 0.012
"""Pause before each piece of a streamed answer, so that the page shows that something is being written."""
STREAM_SECONDS = 3.0
"""So long are all pauses of an answer together at most: nobody waits for a machine that pretends to think."""

JSON_PIECE_CHARS = 40
DELTA = "content_block_delta"


class OfflineTransport(httpx2.AsyncBaseTransport):
    """Speaks the Messages API, streaming and not, without a network."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "POST" or request.url.path != "/v1/messages":
            return httpx2.Response(
                404, json=_error("not_found_error", "Offline mode answers only /v1/messages.")
            )
        wanted = json.loads(await request.aread())
        blocks = respond(wanted)
        message = _message(blocks)
        if not wanted.get("stream"):
            return httpx2.Response(200, json=message)
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=_Stream(message))


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, message: dict[str, Any]) -> None:
        self.message = message

    async def __aiter__(self) -> AsyncIterator[bytes]:
        events = list(_events(self.message))
        pieces = sum(event["type"] == DELTA for event in events)
        pause = min(WORD_SECONDS, STREAM_SECONDS / max(1, pieces))
        for event in events:
            if event["type"] == DELTA:
                await asyncio.sleep(pause)
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _message(blocks: Blocks) -> dict[str, Any]:
    calls = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": f"msg_offline_{uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": OFFLINE,
        "content": blocks,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 0, "output_tokens": 0},  # no model reads or writes anything
    }


def _events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    head = message | {"content": [], "stop_reason": None}
    yield {"type": "message_start", "message": head}
    for index, block in enumerate(message["content"]):
        yield from _block_events(index, block)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": message["usage"]}
    yield {"type": "message_stop"}


def _block_events(index: int, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        start = block | {"text": ""}
        pieces = [
            {"type": "text_delta", "text": word} for word in re.findall(r"\s*\S+\s?|\s+", block["text"])
        ]
    else:
        start = block | {"input": {}}
        source = json.dumps(block["input"])
        cuts = range(0, len(source), JSON_PIECE_CHARS)
        pieces = [
            {"type": "input_json_delta", "partial_json": source[at : at + JSON_PIECE_CHARS]} for at in cuts
        ]
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for piece in pieces:
        yield {"type": DELTA, "index": index, "delta": piece}
    yield {"type": "content_block_stop", "index": index}


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}
