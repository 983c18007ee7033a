"""The body of a Messages request: read where it lies, so that a block can be put into it and every other byte stays."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed does not list it
from typing import Any

_VALUE = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # nor this one
_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = scanstring
READ_ONCE = frozenset({"messages", "content", "role"})
"""Fields of which a second one of the same name would be read differently here and upstream."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message; its content stands at `start` to `end` in the body's text."""

    role: str
    content: Any
    start: int
    end: int

    @property
    def blocks(self) -> list[Any]:
        """The content as blocks; a string is one text block."""
        if isinstance(self.content, str):
            return [{"type": "text", "text": self.content}]
        return self.content if isinstance(self.content, list) else []


class Unreadable(Exception):
    """The body is not a Messages request that this module understands."""


@dataclass(frozen=True)
class MessagesBody:
    """A request: its text, its fields but for `messages`, and the messages."""

    text: str
    fields: Mapping[str, Any]
    messages: Sequence[Message]

    @cached_property
    def newest(self) -> int | None:
        """The place of the newest message of the user."""
        places = (place for place in range(len(self.messages) - 1, -1, -1))
        return next((place for place in places if self.messages[place].role == "user"), None)

    @cached_property
    def keys(self) -> dict[int, str]:
        """By place, what each message of the user goes by in its session: what it says, what theirs before it said, and how often
        the one was said behind the other before. So the same words are others once a client has summed up what came before.

        Cache markers do not count, nor do the contents of tool results, which clients clear from older messages.
        """
        said: Counter[str] = Counter()
        salt = before = str(self.previous_reply)
        found = {}
        for place, message in enumerate(self.messages):
            if message.role == "user":
                text = _canonical([_short(block) for block in message.blocks])
                pair = f"{_digest(before)} {text}"
                found[place] = _digest(f"{salt} {said[pair]} {pair}")
                said[pair] += 1
                before = text
        return found

    @cached_property
    def chains(self) -> list[str]:
        """For each message, what the system prompt and all messages up to it go by."""
        sha = hashlib.sha256(_canonical(_unmarked(self.fields.get("system"))).encode())
        found = []
        for message in self.messages:
            sha.update(_canonical([message.role, _unmarked(message.blocks)]).encode())
            found.append(sha.hexdigest())
        return found

    @property
    def previous_reply(self) -> str:
        """The answer that a server-side thread goes on from, "" without one."""
        thread = self.fields.get("thread")
        named = thread.get("previous_message_id") if isinstance(thread, dict) else None
        return named if isinstance(named, str) else ""

    def with_blocks(self, texts: Mapping[int, str]) -> bytes:
        """The body with a text block at the end of the messages at these places; every other byte is as it came."""
        pieces, at = [], 0
        for place in sorted(texts):
            message = self.messages[place]
            block = json.dumps({"type": "text", "text": texts[place]})
            if isinstance(message.content, str):
                own = self.text[message.start : message.end]
                piece = f'[{{"type": "text", "text": {own}}}, {block}]'
                pieces += [self.text[at : message.start], piece]
                at = message.end
            else:
                end = message.end - 1  # before the closing bracket
                pieces += [self.text[at:end], f"{', ' if message.content else ''}{block}"]
                at = end
        return "".join([*pieces, self.text[at:]]).encode("utf-8", "surrogatepass")


def read_body(data: bytes) -> MessagesBody:
    """The request in a body. Unreadable for what is no JSON object with a list of messages, each with role and content."""
    try:
        text = data.decode("utf-8")
        fields: dict[str, Any] = {}
        messages: list[Message] = []

        def field(name: str, at: int) -> int:
            if name == "messages":
                return _items(text, at, lambda start: _message(text, start, messages))
            fields[name], end = _VALUE(text, at)
            return int(end)

        end = _members(text, _space(text, 0), field)
    except (ValueError, StopIteration, IndexError, RecursionError) as error:
        raise Unreadable from error
    if _space(text, end) != len(text) or not messages:
        raise Unreadable
    return MessagesBody(text, fields, messages)


def _message(text: str, start: int, messages: list[Message]) -> int:
    values: dict[str, Any] = {}
    places = {}

    def field(name: str, at: int) -> int:
        values[name], end = _VALUE(text, at)
        places[name] = at, int(end)
        return int(end)

    end = _members(text, start, field)
    role, content = values.get("role"), values.get("content")
    if not isinstance(role, str) or not isinstance(content, str | list):
        raise Unreadable
    messages.append(Message(role, content, *places["content"]))
    return end


def _members(text: str, at: int, read: Callable[[str, int], int]) -> int:
    """The end of the object at a place; `read` takes each field's name and where its value begins, and gives where it ends."""
    if text[at] != "{":
        raise Unreadable
    seen = set()
    at = _space(text, at + 1)
    if text[at] == "}":
        return at + 1
    while True:
        if text[at] != '"':
            raise Unreadable
        name, at = _STRING(text, at + 1)
        if name in READ_ONCE and name in seen:
            raise Unreadable
        seen.add(name)
        at = _space(text, at)
        if text[at] != ":":
            raise Unreadable
        at = _space(text, read(name, _space(text, at + 1)))
        if text[at] == "}":
            return at + 1
        if text[at] != ",":
            raise Unreadable
        at = _space(text, at + 1)


def _items(text: str, at: int, read: Callable[[int], int]) -> int:
    """The end of the list at a place; `read` takes where each item begins and gives where it ends."""
    if text[at] != "[":
        raise Unreadable
    at = _space(text, at + 1)
    if text[at] == "]":
        return at + 1
    while True:
        at = _space(text, read(at))
        if text[at] == "]":
            return at + 1
        if text[at] != ",":
            raise Unreadable
        at = _space(text, at + 1)


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _short(block: Any) -> Any:
    if isinstance(block, dict) and block.get("type") == "tool_result":
        return ["tool_result", block.get("tool_use_id")]
    return _unmarked(block)


def _unmarked(value: Any) -> Any:
    """A value without the cache markers in it, and a string as the text block that it stands for."""
    if isinstance(value, dict):
        return {name: _unmarked(part) for name, part in value.items() if name != "cache_control"}
    if isinstance(value, list):
        return [_unmarked(part) for part in value]
    return value


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
