"""Reads an answer beside its way to the client: its words, its tokens, and whether others' words are in it."""

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from apps.agent.model.client import Usage, priced
from apps.core.text import estimate_tokens
from apps.gateway.proxy.words import is_others_block

MOST_TEXT = 100_000
MOST_TOKENS = 2**31 - 1
MOST_JSON = 32_000_000
"""Bytes of an answer in one piece that are kept until its end."""
MOST_LINE = 4_000_000
"""Bytes of one line of a stream that are kept; a longer one is passed on and not read."""
PICTURE_TOKENS = 1_600
"""A picture counts as so many at most, however many bytes it has."""
_PICTURE = re.compile(rb'"data"\s*:\s*"[A-Za-z0-9+/=]{400,}"')
COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class Answer:
    """Feed it the bytes of the body as they came over the wire, then `end` it. What cannot be read leaves `readable` false.

    `sent` is the body of the request. The status is 0 where no answer began, since the client went away first.
    """

    def __init__(self, sent: bytes, status: int = 0, headers: Mapping[str, str] | None = None) -> None:
        self.status = status
        headers = headers or {}
        self.readable = True
        self.complete = False
        self.id = self.model = self.stop_reason = self.error = ""
        self.others_words = False
        self.usage: dict[str, int] = {}
        self._sent = sent
        self.request_id = headers.get("request-id", "")
        self._text: list[str] = []
        self._chars = self._unkept = 0
        self._streams = "text/event-stream" in headers.get("content-type", "")
        self._rest = bytearray()
        self._decoder = _decoder(headers.get("content-encoding", ""))
        self.readable = self._decoder is not None

    @property
    def text(self) -> str:
        """The answer's words to people, at most MOST_TEXT characters."""
        return "".join(self._text)[:MOST_TEXT]

    @property
    def spent(self) -> Usage:
        """The tokens as the endpoint counted them; of an answer that was cut short at least an estimate of what had come, and of
        the request where no count had."""
        counted = dict(self.usage)
        if not self.complete:
            if not counted and self.status in (0, 200):
                counted["input_tokens"] = _estimated(self._sent)
            estimate = estimate_tokens(self.text) + self._unkept // 4
            counted["output_tokens"] = max(counted.get("output_tokens", 0), estimate)
        return priced(counted, self.model)

    def feed(self, data: bytes) -> None:
        """Takes the next bytes."""
        if not self.readable:
            return
        try:
            plain = self._decoder.decompress(data) if self._decoder else b""
        except zlib.error:
            self.readable = False
            return
        self._rest += plain
        if self._streams:
            for line in self._lines():
                self._line(line)
            if len(self._rest) > MOST_LINE:
                self._rest.clear()
        elif len(self._rest) > MOST_JSON:
            self.readable = False
            self._rest.clear()

    def end(self) -> None:
        """Reads what was kept: the last line, or the answer in one piece."""
        if not self.readable:
            return
        rest = bytes(self._rest)
        self._rest.clear()
        if self._streams:
            self._line(rest)
            return
        try:
            message = json.loads(rest)
        except (ValueError, RecursionError):
            self._unkept += len(rest) if self.status == 200 else 0
            return
        if isinstance(message, dict):
            self._whole(message)

    def _lines(self) -> Iterator[bytes]:
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest[:] = rest
        yield from lines

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        try:
            event = json.loads(line[5:])
        except (ValueError, RecursionError):
            return
        if isinstance(event, dict):
            self._event(event)

    def _event(self, event: dict[str, Any]) -> None:
        match event:
            case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": str(text)}}:
                self._say(text)
            case {"type": "content_block_delta", "delta": dict(delta)}:
                self._unkept += sum(len(part) for part in delta.values() if isinstance(part, str))
            case {"type": "content_block_start", "content_block": dict(block)}:
                self._block(block)
            case {"type": "message_start", "message": dict(message)}:
                self._head(message)
            case {"type": "message_delta"}:
                self._count(event.get("usage"))
                self.stop_reason = _text(event.get("delta"), "stop_reason") or self.stop_reason
            case {"type": "message_stop"}:
                self.complete = True
            case {"type": "error", "error": dict(error)}:
                self.error = _text(error, "type")

    def _whole(self, message: dict[str, Any]) -> None:
        if message.get("type") == "error":
            self.error = _text(message.get("error"), "type")
            return
        self._head(message)
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict):
                self._block(block)
        self.stop_reason = _text(message, "stop_reason")
        self.complete = message.get("type") == "message"

    def _head(self, message: dict[str, Any]) -> None:
        self.id, self.model = _text(message, "id"), _text(message, "model")
        self._count(message.get("usage"))

    def _block(self, block: dict[str, Any]) -> None:
        self.others_words |= is_others_block(block.get("type"))
        if block.get("type") == "text":
            if self._text:
                self._say("\n\n")
            self._say(_text(block, "text"))

    def _say(self, text: str) -> None:
        if self._chars < MOST_TEXT:
            self._text.append(text)
        else:
            self._unkept += len(text)
        self._chars += len(text)

    def _count(self, usage: Any) -> None:
        """Later counts replace earlier ones: the API's are totals."""
        for name in COUNTS:
            count = usage.get(name) if isinstance(usage, dict) else None
            if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
                self.usage[name] = min(count, MOST_TOKENS)


class _Plain:
    def decompress(self, data: bytes) -> bytes:
        return data


def _estimated(body: bytes) -> int:
    """About how many tokens a request has, by its size: one in four bytes, but for pictures."""
    text, pictures = _PICTURE.subn(b"", body)
    return len(text) // 4 + pictures * PICTURE_TOKENS


def _decoder(encoding: str) -> Any:
    """A function that undoes a content encoding; None for one that cannot be read here."""
    match encoding.strip().lower():
        case "" | "identity":
            return _Plain()
        case "gzip" | "x-gzip" | "deflate":
            return zlib.decompressobj(zlib.MAX_WBITS | 32)  # either, by its header
    return None


def _text(value: Any, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""
