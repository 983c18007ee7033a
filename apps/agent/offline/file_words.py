"""File commands in the user's words: whatever names a path under /memories is meant for the tool `memory`."""

import re
from typing import Any

PATH = r"""["'`“]?(?P<path>/memories(?:/[^\s"'`”]*)?)["'`”]?"""
NEW_PATH = PATH.replace("<path>", "<new_path>")
A_FILE = (
    r"(?:(?:the|a|my)\s+)?(?:new\s+)?(?:(?:memory\s+)?(?:file|directory|folder)\s+)?(?:called\s+|named\s+)?"
)
TEXT = r"(?P<text>.*)"
LINES = r"(?:\s*,?\s*lines?\s+(?P<first>\d{1,6})(?:\s*(?:-|–|to)\s*(?P<last>\d{1,6}|the end|end))?)?"

PATTERNS = [
    ("create", rf"(?:create|write|make|add|start)\s+{A_FILE}{PATH}(?:\s*(?:with|containing|saying|:)(?:\s+(?:the\s+)?(?:text|content|contents))?\s*:?\s*{TEXT})?"),
    ("create", rf"(?:write|save|put)\s{TEXT}\s(?:to|into|in)\s+{A_FILE}{PATH}"),
    ("rename", rf"(?:rename|move)\s+{A_FILE}{PATH}\s+(?:to|into|as)\s+{NEW_PATH}"),
    ("delete", rf"(?:delete|remove|erase|forget)\s+{A_FILE}{PATH}"),
    ("str_replace", rf"(?:replace|change)\s(?P<old>.+?)\s(?:with|by|to|into)\s(?P<new>.+?)\sin\s+{A_FILE}{PATH}"),
    ("str_replace", rf"in\s+{A_FILE}{PATH}\s*,?\s+(?:replace|change)\s(?P<old>.+?)\s(?:with|by|to|into)\s(?P<new>.+)"),
    ("cut", rf"(?:delete|remove|erase)\s(?P<old>.+?)\s(?:from|in)\s+{A_FILE}{PATH}"),
    ("insert", rf"(?:insert|add|put)\s{TEXT}\s(?:at|after|in|on)\s+line\s+(?P<line>\d{{1,6}})\s+(?:of|in|to|into)\s+{A_FILE}{PATH}"),
    ("top", rf"(?:insert|add|put)\s{TEXT}\s(?:at|to)\s+the\s+(?:top|beginning|start)\s+of\s+{A_FILE}{PATH}"),
    ("view", rf"(?:(?:view|show|open|read|list|display|cat|ls)(?:\s+me)?|what(?:'s|’s|\s+is)\s+in|look\s+(?:in|into|at))?\s*(?:what(?:'s|’s|\s+is)\s+in\s+|(?:all\s+)?(?:the\s+|my\s+)?(?:memory\s+)?files\s+(?:in|under)\s+)?{A_FILE}{PATH}{LINES}"),
]  # fmt: skip
COMPILED = [
    (name, re.compile(rf"{pattern}[\s.!?]*", re.IGNORECASE | re.DOTALL)) for name, pattern in PATTERNS
]
MAX_CHARS = 2_000
"""Longer words are only looked at for what creates a file: the other patterns are not linear."""

QUOTES = {'"': '"', "'": "'", "“": "”", "`": "`"}


def file_command(words: str) -> dict[str, Any] | None:
    """The fields of the tool call that the words ask for; None where they are no file command."""
    if "/memories" not in words.lower():
        return None
    patterns = COMPILED if len(words) <= MAX_CHARS else COMPILED[:1]
    for name, pattern in patterns:
        if match := pattern.fullmatch(words):
            parts = {key: value for key, value in match.groupdict().items() if value is not None}
            return _fields(name, parts)
    return None


def _fields(name: str, parts: dict[str, str]) -> dict[str, Any]:
    path = parts["path"].rstrip(".,;:!?")
    match name:
        case "create":
            return {"command": name, "path": path, "file_text": _plain(parts.get("text", ""))}
        case "rename":
            return {"command": name, "old_path": path, "new_path": parts["new_path"].rstrip(".,;:!?")}
        case "str_replace":
            old, new = _plain(parts["old"]), _plain(parts["new"])
            return {"command": name, "path": path, "old_str": old, "new_str": new}
        case "cut":
            return {"command": "str_replace", "path": path, "old_str": _plain(parts["old"]), "new_str": ""}
        case "insert" | "top":
            line = int(parts.get("line", "0"))
            return {
                "command": "insert",
                "path": path,
                "insert_line": line,
                "insert_text": _plain(parts["text"]),
            }
    return {"command": name, "path": path} | _range(parts)


def _range(parts: dict[str, str]) -> dict[str, Any]:
    if "first" not in parts:
        return {}
    last = parts.get("last", parts["first"])
    return {"view_range": [int(parts["first"]), int(last) if last.isdigit() else -1]}


def _plain(text: str) -> str:
    """The text without the quotation marks around it; `\\n` written out is a line break."""
    text = text.strip()
    closed = text.rstrip(".!")
    if len(closed) >= 2 and QUOTES.get(closed[0]) == closed[-1]:
        text = closed[1:-1]
    return text.replace("\\n", "\n")
