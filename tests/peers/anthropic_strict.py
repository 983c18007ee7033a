"""Rules by which a strict server of the Messages API refuses requests."""

import re
from typing import Any

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
ID = re.compile(r"[a-zA-Z0-9_-]+")


def problem_of(request: dict[str, Any]) -> str:
    """Why the request would be refused, "" where it would not."""
    messages = [(each["role"], _blocks(each["content"])) for each in request["messages"]]
    if not messages or messages[0][0] != "user":
        return "messages: the first message must use the user role"
    if messages[-1][0] == "assistant" and messages[-1][1][-1:] and _ends_in_space(messages[-1][1][-1]):
        return "messages: final assistant content cannot end with trailing whitespace"
    if bad := [tool["name"] for tool in request.get("tools", []) if not NAME.fullmatch(tool["name"])]:
        return f"tools: names do not match: {bad}"
    seen: list[str] = []
    calls: list[str] = []
    for place, (role, blocks) in enumerate(messages):
        if not blocks:
            return f"messages.{place}: content must not be empty"
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(calls):
            return f"messages.{place}: results {results} for the calls {calls}"
        if any(block["type"] == "tool_result" for block in blocks[len(results) :]):
            return f"messages.{place}: tool_result blocks must come first"
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        seen += calls
        if role == "user" and calls:
            return f"messages.{place}: tool_use blocks can only be in assistant messages"
        for block in blocks:
            if problem := _problem(block):
                return f"messages.{place}: {problem}"
    if calls:
        return f"tool_use ids were found without tool_result blocks: {calls}"
    return "" if len(set(seen)) == len(seen) else "tool_use ids must be unique"


def _problem(block: dict[str, Any]) -> str:
    match block["type"]:
        case "text" if not block["text"].strip():
            return "text content blocks must contain non-whitespace text"
        case "tool_use" if not NAME.fullmatch(block["name"]):
            return f"tool_use.name: {block['name']!r} does not match"
        case "tool_use" if not ID.fullmatch(block["id"]):
            return f"tool_use.id: {block['id']!r} does not match"
        case "tool_use" if not isinstance(block["input"], dict):
            return "tool_use.input: must be an object"
    return ""


def _ends_in_space(block: dict[str, Any]) -> bool:
    return block["type"] == "text" and str(block["text"])[-1:].isspace()


def _blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
