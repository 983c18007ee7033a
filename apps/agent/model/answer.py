"""A streamed answer: its events put together to content blocks, stop reason and usage, and its pieces joined."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from uuid import uuid4

from apps.agent.model.client import INCOMPLETE_INPUT, ModelEvent, ServerCall, ServerResult, TextChunk
from apps.agent.model.messages import (
    CALL,
    GAP,
    RESULT_SUFFIX,
    is_result,
    is_server_block,
    source_links,
    valid_id,
    valid_name,
)
from apps.core.text import depth_of, estimate_tokens, storable, strict_loads

MAX_COUNT = 2**31 - 1
"""No server counts more tokens than this in earnest, and the ledger cannot hold more."""
MAX_DEPTH = 100
"""Input as deep as this is not taken for one: what follows (schemas, secrets, rows) goes through it level by level."""


@dataclass(slots=True)
class OpenBlock:
    """A block that is still coming. `start` is what it began as; the parts are what came since."""

    start: dict[str, Any]
    text: list[str] = field(default_factory=list)
    json: list[str] = field(default_factory=list)
    signature: str = ""
    citations: list[dict[str, Any]] = field(default_factory=list)


@dataclass(slots=True)
class Answer:
    """An answer as it comes in. `complete` is true once the last event was seen."""

    left: int  # characters that it may still have
    opened: dict[int, OpenBlock] = field(default_factory=dict)
    stop_reason: str = ""
    started: bool = False
    complete: bool = False
    model: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    server: list[ServerCall | ServerResult] = field(default_factory=list)
    full: bool = False
    _said: bool = False
    _gap: bool = False

    def take(self, event: Mapping[str, Any]) -> str:
        """Takes the next event of the stream; returns the text it brought, or "".

        What the endpoint's own tools did is added to `server`; who calls takes it from there. All text together is
        what `messages.readable_text` makes of the blocks. KeyError, TypeError or AttributeError where parts are missing.
        """
        text = ""
        match event["type"]:
            case "message_start":
                message = event["message"]
                self.started, self.model = True, _word(message.get("model"))
                self.usage |= _counted(message.get("usage"))
            case "content_block_start":
                text = self._begin(event["index"], dict(event["content_block"]))
            case "content_block_delta" if event["index"] in self.opened:
                text = self._delta(self.opened[event["index"]], event["delta"])
            case "content_block_stop" if event["index"] in self.opened:
                block = self.opened[event["index"]]
                if block.start["type"] == CALL:
                    made = storable(_block(block, cut=False))
                    self.server.append(
                        ServerCall(str(made.get("id")), str(made.get("name")), made["input"])
                    )
                if block.citations:
                    text = storable(source_links(block.citations))
            case "message_delta":
                self.stop_reason = _word(event["delta"].get("stop_reason")) or self.stop_reason
                self.usage |= _counted(event.get("usage"))
            case "message_stop":
                self.complete = True
        if text and self._gap:
            text, self._gap = (GAP if self._said else "") + text, False
        self._said = self._said or bool(text)
        return text

    def _begin(self, index: int, begun: dict[str, Any]) -> str:
        said = self._fitting(begun.get("text") or "")
        self.opened[index] = OpenBlock(begun, text=[said])
        self._gap = self._gap or is_server_block(begun)
        if is_result(begun):
            name = str(begun["type"]).removesuffix(RESULT_SUFFIX)
            self.server.append(ServerResult(str(begun["tool_use_id"]), name, storable(begun)))
        return storable(said) if begun["type"] == "text" else ""

    def _delta(self, block: OpenBlock, delta: Mapping[str, Any]) -> str:
        match delta["type"]:
            case "text_delta":
                text: str = storable(self._fitting(delta["text"]))
                block.text.append(text)
                return text
            case "input_json_delta":
                block.json.append(self._fitting(delta["partial_json"]))
            case "thinking_delta":
                block.text.append(self._fitting(delta["thinking"]))
            case "signature_delta":
                block.signature = delta["signature"]
            case "citations_delta":
                block.citations.append(dict(delta["citation"]))
        return ""

    def _fitting(self, piece: str) -> str:
        """As much of the piece as the answer may still have. One that is full has ended, as at its length limit."""
        fitting = piece[: self.left]
        self.left -= len(fitting)
        if len(fitting) < len(piece):
            self.stop_reason, self.complete, self.full = "max_tokens", True, True
        return fitting

    @property
    def tokens(self) -> dict[str, int]:
        """As the endpoint counted them; it says at the end alone how many it wrote, so what had come by then is estimated."""
        if self.complete and not self.full:
            return self.usage
        came = estimate_tokens(
            "".join(piece for each in self.opened.values() for piece in each.text + each.json)
        )
        return self.usage | {"output_tokens": max(self.usage.get("output_tokens", 0), came)}

    def blocks(self) -> list[dict[str, Any]]:
        """The blocks as they go back into the next request; blank text is left out, which the API refuses.

        Of an answer cut at its length limit, a tool call in last place is marked as incomplete. Tool calls get a proper name,
        and an id where a server sent none or the same twice: results find their calls.
        """
        last = max(self.opened, default=None) if self.stop_reason == "max_tokens" else None
        made = [_block(self.opened[index], cut=index == last) for index in sorted(self.opened)]
        kept = [block for block in made if block["type"] != "text" or block["text"].strip()]
        blocks: list[dict[str, Any]] = storable(kept)
        seen: set[str] = set()
        for block in (block for block in blocks if block["type"] == "tool_use"):
            block["name"] = valid_name(block["name"])
            block["id"] = valid_id(block["id"]) if block["id"] else ""
            if not block["id"] or block["id"] in seen:
                block["id"] = f"toolu_{uuid4().hex}"
            seen.add(block["id"])
        return blocks


def _block(block: OpenBlock, *, cut: bool) -> dict[str, Any]:
    start = block.start
    match start["type"]:
        case "text":
            made = {"type": "text", "text": "".join(block.text)}
            return made | {"citations": block.citations} if block.citations else made
        case "thinking":
            return {"type": "thinking", "thinking": "".join(block.text), "signature": block.signature}
        case "tool_use":
            call = {"type": "tool_use", "id": start.get("id") or "", "name": start.get("name") or ""}
            return call | {"input": _input(block, cut=cut)}
        case "server_tool_use":
            return start | {"input": _input(block, cut=False)}
    return start


def _input(block: OpenBlock, *, cut: bool) -> dict[str, Any]:
    # A lone surrogate becomes its escape, which JSON joins again where its other half stood in the next piece.
    source = "".join(block.json).encode("utf-8", "backslashreplace").decode()
    given = block.start.get("input") or {}
    if cut:
        return {INCOMPLETE_INPUT: source}
    try:
        value = strict_loads(source or json.dumps(given))
    except (ValueError, RecursionError):
        return {INCOMPLETE_INPUT: source}
    usable = isinstance(value, dict) and depth_of(value) < MAX_DEPTH and storable(value) == value
    return value if usable else {INCOMPLETE_INPUT: source}


def _word(value: Any) -> str:
    """A name in the answer, which some servers leave out or send as something else."""
    return str(storable(value)) if isinstance(value, str) else ""


TURN_SECONDS = 0.02
"""So long the stream is read on before others get their turn, where it has more without waiting."""


async def merged(events: AsyncGenerator[ModelEvent, None]) -> AsyncGenerator[ModelEvent, None]:
    """The same events, read ahead: text that came while the reader was busy is one piece. Raises what `events` raises."""
    waiting: list[ModelEvent] = []
    came = asyncio.Event()

    async def read() -> None:
        began = time.monotonic()
        try:
            async with aclosing(events):
                async for event in events:
                    waiting.append(event)
                    came.set()
                    if time.monotonic() - began > TURN_SECONDS:
                        await asyncio.sleep(0)
                        began = time.monotonic()
        finally:
            came.set()

    reading = asyncio.create_task(read())
    try:
        while not reading.done() or waiting:
            await came.wait()
            came.clear()
            ready, waiting[:] = list(waiting), []
            for kind, run in groupby(ready, type):
                if kind is TextChunk:
                    yield TextChunk("".join(chunk.text for chunk in run if isinstance(chunk, TextChunk)))
                    continue
                for event in run:
                    yield event
        reading.result()
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


def _counted(usage: Any) -> dict[str, int]:
    """The tokens that the answer names."""
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    values = {name: usage.get(name) for name in names} if isinstance(usage, dict) else {}
    return {
        name: min(max(value, 0), MAX_COUNT) for name, value in values.items() if isinstance(value, int)
    }
