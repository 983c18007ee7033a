"""A step of the log opened up: what was given and what came back, as something to read rather than JSON."""

import re
from typing import Any

from apps.agent.results import result_json
from apps.chat.decision_log.words import TARGETS, command_of, file_name

MAX_LISTED = 50
PREVIEW_CHARS = 8_000
_HEADING = re.compile(r"^Here're the files and directories.*\n?|^Here's the content of .*\n?")
"""The file tool's line to the model above a listing or a text."""
_PATHS = {"path", "old_path", "new_path", "command"}
_OLD, _NEW = ("old_str", "old_string"), ("new_str", "new_string")
_TEXTS = ("file_text", "content", "insert_text", "text", *_NEW)


def step_card(step: dict[str, Any]) -> dict[str, Any]:
    """`{facts: [(name, value)], removed, added, text, found: [text], result, error}`; what does not apply is empty.

    `removed` and `added` are the lines of a replacement, `text` what was written, `found` what a search gave.
    """
    given = step["input"]
    card: dict[str, Any] = {
        "facts": [],
        "removed": [],
        "added": [],
        "text": "",
        "found": [],
        "result": "",
        "error": "",
    }
    if step["tool"] == "memory":
        _file(card, given)
    else:
        card["facts"] = [(name.replace("_", " "), _value(value)) for name, value in given.items()]
    if step["state"] != "ok":
        said = step["result"].removeprefix("Error: ")
        card["error"] = said if step["state"] == "error" and said != step["outcome"] else ""
        return card
    result = result_json(step["result"])
    card["found"] = _listed(result)
    if isinstance(result, dict) and isinstance(result.get("summary"), str):
        card["result"] = result["summary"]
    elif not card["found"] and step["tool"] != "think":
        card["result"] = _answer(result, _HEADING.sub("", step["result"]))
    return card


def _file(card: dict[str, Any], given: dict[str, Any]) -> None:
    card["facts"] = [("file", file_name(str(given.get("path") or given.get("old_path") or "/memories")))]
    if given.get("new_path"):
        card["facts"].append(("new name", file_name(str(given["new_path"]))))
    if given.get("insert_line") is not None:
        card["facts"].append(("after line", str(given["insert_line"])))
    command = command_of(given)
    if command == "str_replace":
        card["removed"] = _first(given, _OLD).splitlines()
        card["added"] = _first(given, _NEW).splitlines()
    elif command in {"create", "insert"}:
        card["text"] = _first(given, _TEXTS)[:PREVIEW_CHARS]
    others = [name for name in given if name not in {*_PATHS, *_OLD, *_TEXTS, "insert_line"}]
    card["facts"] += [(name.replace("_", " "), _value(given[name])) for name in others]


def _first(given: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((str(given[name]) for name in names if isinstance(given.get(name), str)), "")


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return "yes" if value is True else "no" if value is False else str(value)


def _listed(result: Any) -> list[str]:
    """The texts in a search's result."""
    lists = list(result.values()) if isinstance(result, dict) else [result]
    for entries in lists:
        texts = [_text(entry) for entry in entries[:MAX_LISTED]] if isinstance(entries, list) else []
        if any(texts):
            return [text for text in texts if text]
    return []


def _text(entry: Any) -> str:
    if isinstance(entry, str):
        return entry
    if not isinstance(entry, dict):
        return ""
    return str(next((entry[name] for name in ("text", "title", *TARGETS) if entry.get(name)), ""))


def _answer(result: Any, text: str) -> str:
    """The message or answer of a result, else the text as it is."""
    if isinstance(result, dict):
        said = result.get("answer") or result.get("message")
        if isinstance(said, str) and said:
            return said
        return "\n".join(f"{name.replace('_', ' ')}: {_value(value)}" for name, value in result.items())
    return text[:PREVIEW_CHARS]
