"""Answers that the loopback Messages API server can be given."""

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

Block = dict[str, Any]


def text(content: str) -> Block:
    """A text block; it is streamed word by word."""
    return {"type": "text", "text": content}


def tool(
    name: str, arguments: dict[str, Any] | None = None, *, id: str = "", raw: str | None = None
) -> Block:
    """A tool call. `raw` is streamed as its input instead of `arguments` (cut off or broken JSON)."""
    block = {
        "type": "tool_use",
        "id": id or f"toolu_{uuid4().hex[:20]}",
        "name": name,
        "input": arguments or {},
    }
    if raw is not None:
        block["_raw"] = raw
    return block


def thinking(content: str, signature: str = "c2lnbmVk") -> Block:
    """A thinking block with its signature."""
    return {"type": "thinking", "thinking": content, "signature": signature}


def searched(query: str, *hits: tuple[str, str], id: str = "", error: str = "") -> list[Block]:
    """A web search that the endpoint ran itself: its call, and the result with `(title, url)` of each page."""
    call_id = id or f"srvtoolu_{uuid4().hex[:20]}"
    found: Any = [
        {
            "type": "web_search_result",
            "url": url,
            "title": title,
            "encrypted_content": f"encrypted+{number}/==",
            "page_age": "2 days ago",
        }
        for number, (title, url) in enumerate(hits)
    ]
    if error:
        found = {"type": "web_search_tool_result_error", "error_code": error}
    return [
        {"type": "server_tool_use", "id": call_id, "name": "web_search", "input": {"query": query}},
        {"type": "web_search_tool_result", "tool_use_id": call_id, "content": found},
    ]


def cited(content: str, *sources: tuple[str, str]) -> Block:
    """Text that quotes pages, given as `(title, url)`."""
    citations = [
        {
            "type": "web_search_result_location",
            "url": url,
            "title": title,
            "cited_text": "as it stands there",
            "encrypted_index": f"index+{number}==",
        }
        for number, (title, url) in enumerate(sources)
    ]
    return {"type": "text", "text": content, "citations": citations}


@dataclass
class Reply:
    """One answer to `POST /v1/messages`.

    `stop_reason` defaults to `tool_use` where a block is a tool call, else `end_turn`. `status` other than 200
    answers with an error of `error_type`. `delay` is seconds between two events. After `hold_after` events the
    server waits for `release`. After `cut_after` events the connection is broken (`cut="reset"`) or ends as if
    nothing were missing (`cut="end"`). After `error_after` events an SSE `error` event of `error_type` is sent.
    """

    blocks: list[Block] = field(default_factory=list)
    stop_reason: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    delay: float = 0.0
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    error_type: str = "api_error"
    error_message: str = "made to fail"
    hold_after: int | None = None
    release: threading.Event = field(default_factory=threading.Event)
    cut_after: int | None = None
    cut: str = "reset"
    error_after: int | None = None
    message_id: str = field(default_factory=lambda: f"msg_{uuid4().hex[:20]}")

    def message(self, model: str, input_tokens: int) -> dict[str, Any]:
        """The whole message, as a request without `stream` gets it."""
        content = [
            {key: value for key, value in block.items() if key != "_raw"} for block in self.blocks
        ]
        return self._head(model, input_tokens) | {"content": content, "stop_reason": self._stop_reason()}

    def events(self, model: str, input_tokens: int) -> Iterator[dict[str, Any]]:
        """The events of the stream, in order."""
        yield {"type": "message_start", "message": self._head(model, input_tokens)}
        for index, block in enumerate(self.blocks):
            yield from _block_events(index, block)
        usage = {"output_tokens": self._output_tokens()}
        delta = {"stop_reason": self._stop_reason(), "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": usage}
        yield {"type": "message_stop"}

    def error(self) -> dict[str, Any]:
        """The body of an error."""
        return {"type": "error", "error": {"type": self.error_type, "message": self.error_message}}

    def _head(self, model: str, input_tokens: int) -> dict[str, Any]:
        usage = {"input_tokens": input_tokens, "output_tokens": 1} | self.usage
        head: dict[str, Any] = {
            "id": self.message_id,
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [],
        }
        return head | {"stop_reason": None, "stop_sequence": None, "usage": usage}

    def _stop_reason(self) -> str:
        calls = any(block["type"] == "tool_use" for block in self.blocks)
        return self.stop_reason or ("tool_use" if calls else "end_turn")

    def _output_tokens(self) -> int:
        return self.usage.get("output_tokens", 1 + len(json.dumps(self.blocks)) // 4)


def _block_events(index: int, block: Block) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        start: Block = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": word} for word in words(block["text"])]
        deltas += [
            {"type": "citations_delta", "citation": found} for found in block.get("citations", [])
        ]
    elif block["type"] == "thinking":
        start = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": word} for word in words(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    elif block["type"] in {"tool_use", "server_tool_use"}:
        start = {"type": block["type"], "id": block["id"], "name": block["name"], "input": {}}
        source = block.get("_raw", json.dumps(block["input"]))
        pieces = [source[at : at + 16] for at in range(0, len(source), 16)]
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    else:
        start, deltas = block, []
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def words(content: str) -> list[str]:
    """The text cut behind each run of white space; joined, the pieces give it back."""
    return re.findall(r"\S+\s*|\s+", content)


def reply(*parts: str | Block | list[Block], **options: Any) -> Reply:
    """A reply of text and tool calls: `reply("Let me see.", tool("memory_search", {"query": "food"}))`."""
    blocks: list[Block] = []
    for part in parts:
        blocks += part if isinstance(part, list) else [text(part) if isinstance(part, str) else part]
    return Reply(blocks, **options)


def failure(status: int, error_type: str, message: str = "made to fail", **headers: str) -> Reply:
    """An error status; headers are given with underscores: `retry_after="2"`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, error_type=error_type, error_message=message, headers=named)
