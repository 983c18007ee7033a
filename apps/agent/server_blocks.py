"""Blocks of tools that the endpoint itself runs (web search): how they read, and where they may be sent.

Anthropic's endpoint answers with `server_tool_use` and `…_tool_result` blocks between its text, and wants them back
byte for byte; no other server knows them.
"""

from collections.abc import Iterable
from typing import Any

CALL = "server_tool_use"
RESULT_SUFFIX = "_tool_result"
GAP = "\n\n"
"""Between text before and after such blocks: they are paragraphs of their own."""


def is_result(block: dict[str, Any]) -> bool:
    """Whether the block is the result of a call that the endpoint ran."""
    return str(block.get("type", "")).endswith(RESULT_SUFFIX) and "tool_use_id" in block


def is_server_block(block: dict[str, Any]) -> bool:
    """Whether the block is such a call or its result."""
    return block.get("type") == CALL or is_result(block)


def readable_text(blocks: Iterable[dict[str, Any]]) -> str:
    """The text of these blocks as people read it: sources stand as links behind what they bear out."""
    parts: list[str] = []
    gap = False
    for block in blocks:
        if block.get("type") == "text" and block.get("text"):
            parts += [GAP] if gap and parts else []
            parts.append(str(block["text"]) + source_links(block.get("citations")))
            gap = False
        elif is_server_block(block):
            gap = True
    return "".join(parts)


def source_links(citations: Any) -> str:
    """` ([title](url))` for each page that a text block quotes, once; "" for none."""
    found: dict[str, str] = {}
    for citation in citations if isinstance(citations, list) else []:
        url = str(citation.get("url") or "")
        if url.startswith(("https://", "http://")) and not set(url) & set(" <>\n"):
            found.setdefault(url, " ".join(str(citation.get("title") or url).split()))
    links = [f"[{_plain(title)}](<{url}>)" for url, title in found.items()]
    return f" ({', '.join(links)})" if links else ""


def _plain(title: str) -> str:
    """A title that cannot end its link: the page chose it."""
    return "".join(" " if char in "[]<>`*_\\" else char for char in title).strip()[:80] or "source"


def sendable(messages: list[dict[str, Any]], *, known: bool) -> list[dict[str, Any]]:
    """The history as an endpoint takes it.

    Where it knows the blocks (`known`) they stay as they are, but for calls that never got a result: only at the
    very end, where the endpoint goes on with one, may such a call stand. Elsewhere what they say stays as text.
    """
    if not any(is_server_block(block) for message in messages for block in _blocks(message)):
        return messages
    if not known:
        return [message | {"content": _as_text(_blocks(message))} for message in messages]
    answered = {
        block["tool_use_id"] for message in messages for block in _blocks(message) if is_result(block)
    }
    sent = []
    for index, message in enumerate(messages):
        last = index == len(messages) - 1
        kept = [block for block in _blocks(message) if last or _has_result(block, answered)]
        sent.append(message | {"content": kept or [_text("(The search was broken off.)")]})
    return sent


def _has_result(block: dict[str, Any], answered: set[str]) -> bool:
    return block.get("type") != CALL or block.get("id") in answered


def _as_text(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sent = []
    for block in blocks:
        if is_result(block):
            found = [f"{hit['title']} <{hit['url']}>" for hit in results_of(block)]
            sent.append(_text(f"(Found on the web: {'; '.join(found) or 'nothing'}.)"))
        elif block.get("type") != CALL:
            sent.append({key: value for key, value in block.items() if key != "citations"})
    return sent or [_text("(Searched the web.)")]


def results_of(block: dict[str, Any]) -> list[dict[str, str]]:
    """`{title, url, age}` of each page in a result block; [] for an error."""
    content = block.get("content")
    hits = [hit for hit in content if isinstance(hit, dict)] if isinstance(content, list) else []
    return [
        {
            "title": str(hit.get("title") or hit.get("url") or ""),
            "url": str(hit.get("url") or ""),
            "age": str(hit.get("page_age") or ""),
        }
        for hit in hits
    ]


def error_of(block: dict[str, Any]) -> str:
    """The error code of a result block, or ""."""
    content = block.get("content")
    return str(content.get("error_code") or "unavailable") if isinstance(content, dict) else ""


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [_text(content)] if isinstance(content, str) else content


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}
