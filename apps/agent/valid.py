"""Input any Messages API server takes: names and ids of tool calls, text that is not blank, a result for each call."""

import hashlib
import re
from typing import Any

_ODD = re.compile(r"[^a-zA-Z0-9_-]")
MAX_CHARS = 128
NO_RESULT = "There is no result of this call."

Block = dict[str, Any]


def valid_name(name: str) -> str:
    """A tool's name as the API takes it, whatever the model made up."""
    return _ODD.sub("_", name)[:MAX_CHARS] or "unnamed"


def valid_id(call_id: str) -> str:
    """A call's id as the API takes it; always the same for the same."""
    if call_id and len(call_id) <= MAX_CHARS and not _ODD.search(call_id):
        return call_id
    return f"toolu_{hashlib.sha256(call_id.encode('utf-8', 'replace')).hexdigest()[:32]}"


def valid_messages(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The history without what a strict endpoint would refuse, which would be the end of that conversation.

    Calls have proper names, ids of their own and results right behind them; blank texts and results without a call are left
    out, and so are messages in which nothing is left. The same history always gives the same.
    """
    valid: list[dict[str, Any]] = []
    seen: set[str] = set()
    calls: list[tuple[str, str]] = []  # The newest calls: the id each had, and the one it has now.
    for message in messages:
        content = _blocks(message["content"])
        _add(valid, "user", _results(calls, content))
        calls = []
        if message["role"] == "assistant":
            content = [_call(block, calls, seen) for block in content]
        said = [block for block in content if block["type"] != "tool_result" and not _is_blank(block)]
        _add(valid, message["role"], said)
    _add(valid, "user", _results(calls, []))
    return valid


def _call(block: Block, calls: list[tuple[str, str]], seen: set[str]) -> Block:
    if block["type"] != "tool_use":
        return block
    call_id = valid_id(block["id"])
    while call_id in seen:
        call_id = valid_id(f"{call_id}/{len(seen)}")
    seen.add(call_id)
    calls.append((block["id"], call_id))
    given = block["input"] if isinstance(block["input"], dict) else {}
    return block | {"id": call_id, "name": valid_name(block["name"]), "input": given}


def _results(calls: list[tuple[str, str]], content: list[Block]) -> list[Block]:
    """A result for each of these calls, in their order."""
    found: list[Block] = []
    given = [block for block in content if block["type"] == "tool_result"]
    for old, new in calls:
        mine = next((block for block in given if block["tool_use_id"] == old), None)
        if mine is not None:
            given.remove(mine)
        result = mine or {"type": "tool_result", "content": NO_RESULT, "is_error": True}
        found.append(result | {"tool_use_id": new})
    return found


def _add(valid: list[dict[str, Any]], role: str, blocks: list[Block]) -> None:
    if blocks and valid and valid[-1]["role"] == role:
        valid[-1] = {"role": role, "content": [*_blocks(valid[-1]["content"]), *blocks]}
    elif blocks:
        valid.append({"role": role, "content": blocks})


def _blocks(content: str | list[Block]) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _is_blank(block: Block) -> bool:
    return block["type"] == "text" and not block["text"].strip()
