"""Messages as the API wants them: what may be sent, and how their blocks read.

Anthropic's endpoint answers with `server_tool_use` and `…_tool_result` blocks between its text (web search), and wants them
back byte for byte; no other server knows them.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Any

Block = dict[str, Any]

MAX_CHARS = 128  # of a name or an id
NO_RESULT = "There is no result of this call."
_ODD = re.compile(r"[^a-zA-Z0-9_-]")

CALL = "server_tool_use"
RESULT_SUFFIX = "_tool_result"
GAP = "\n\n"
"""Between text before and after such blocks: they are paragraphs of their own."""


def is_result(block: Block) -> bool:
    """Whether the block is the result of a call that the endpoint ran."""
    return str(block.get("type", "")).endswith(RESULT_SUFFIX) and "tool_use_id" in block


def is_server_block(block: Block) -> bool:
    """Whether the block is such a call or its result."""
    return block.get("type") == CALL or is_result(block)


def readable_text(blocks: Iterable[Block]) -> str:
    """The text of these blocks as people read it: sources stand as links behind what they bear out."""
    parts: list[str] = []
    gap = False
    for block in blocks:
        if block.get("type") == "text" and block.get("text"):
            parts += [GAP] if gap and parts else []
            cited = block.get("citations")
            parts.append(str(block["text"]) + (source_links(cited) if cited else ""))
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
    # The page chose its title: it must not end the link.
    titles = {
        url: re.sub(r"[\[\]<>`*_\\]", " ", title).strip()[:80] or "source"
        for url, title in found.items()
    }
    links = [f"[{title}](<{url}>)" for url, title in titles.items()]
    return f" ({', '.join(links)})" if links else ""


def sendable(messages: list[Block], *, known: bool) -> list[Block]:
    """The history as an endpoint takes it.

    Where it knows the blocks (`known`) they stay as they are, but for calls that never got a result: only at the
    very end, where the endpoint goes on with one, may such a call stand. Elsewhere what they say stays as text.
    """
    if not any(is_server_block(block) for message in messages for block in content_of(message)):
        return messages
    if not known:
        return [message | {"content": _as_text(content_of(message))} for message in messages]
    answered = {
        block["tool_use_id"] for message in messages for block in content_of(message) if is_result(block)
    }
    sent = []
    for index, message in enumerate(messages):
        last = index == len(messages) - 1
        kept = [
            block
            for block in content_of(message)
            if last or block.get("type") != CALL or block.get("id") in answered
        ]
        sent.append(message | {"content": kept or [_text("(The search was broken off.)")]})
    return sent


def _as_text(blocks: list[Block]) -> list[Block]:
    sent = []
    for block in blocks:
        if is_result(block):
            found = [f"{hit['title']} <{hit['url']}>" for hit in results_of(block)]
            sent.append(_text(f"(Found on the web: {'; '.join(found) or 'nothing'}.)"))
        elif block.get("type") != CALL:
            sent.append({key: value for key, value in block.items() if key != "citations"})
    return sent or [_text("(Searched the web.)")]


def results_of(block: Block) -> list[dict[str, str]]:
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


def error_of(block: Block) -> str:
    """The error code of a result block, or ""."""
    content = block.get("content")
    return str(content.get("error_code") or "unavailable") if isinstance(content, dict) else ""


def content_of(message: Block) -> list[Block]:
    """The blocks of a message, whichever way it is written."""
    content = message["content"]
    return [_text(content)] if isinstance(content, str) else content


def _text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def valid_name(name: str) -> str:
    """A tool's name as the API takes it, whatever the model made up."""
    return _ODD.sub("_", name)[:MAX_CHARS] or "unnamed"


def valid_id(call_id: str) -> str:
    """A call's id as the API takes it; always the same for the same."""
    if call_id and len(call_id) <= MAX_CHARS and not _ODD.search(call_id):
        return call_id
    return f"toolu_{hashlib.sha256(call_id.encode('utf-8', 'replace')).hexdigest()[:32]}"


def valid_messages(messages: list[Block]) -> list[Block]:
    """The history without what a strict endpoint would refuse, which would be the end of that conversation.

    Calls have proper names, ids of their own and results right behind them; blank texts and results without a call are left
    out, and so are messages in which nothing is left. The same history always gives the same.
    """
    valid: list[Block] = []
    seen: set[str] = set()
    calls: list[tuple[str, str]] = []  # The newest calls: the id each had, and the one it has now.
    for message in messages:
        content = content_of(message)
        if calls:
            _add(valid, "user", _results(calls, content))
        calls, kept = [], []
        for block in content:
            if block["type"] == "tool_use" and message["role"] == "assistant":
                call_id = valid_id(block["id"])
                while call_id in seen:
                    call_id = valid_id(f"{call_id}/{len(seen)}")
                seen.add(call_id)
                calls.append((block["id"], call_id))
                given = block["input"] if isinstance(block["input"], dict) else {}
                kept.append(block | {"id": call_id, "name": valid_name(block["name"]), "input": given})
            elif block["type"] != "tool_result" and (block["type"] != "text" or block["text"].strip()):
                kept.append(block)
        _add(valid, message["role"], kept)
    if calls:
        _add(valid, "user", _results(calls, []))
    return valid


def _results(calls: list[tuple[str, str]], content: list[Block]) -> list[Block]:
    """A result for each of these calls, in their order."""
    found: list[Block] = []
    given = [block for block in content if block["type"] == "tool_result"]
    for old, new in calls:
        missing = {"type": "tool_result", "content": NO_RESULT, "is_error": True}
        result = next((block for block in given if block["tool_use_id"] == old), missing)
        given = [block for block in given if block is not result]
        found.append(result | {"tool_use_id": new})
    return found


def _add(valid: list[Block], role: str, blocks: list[Block]) -> None:
    if blocks and valid and valid[-1]["role"] == role:
        valid[-1] = {"role": role, "content": [*content_of(valid[-1]), *blocks]}
    elif blocks:
        valid.append({"role": role, "content": blocks})
