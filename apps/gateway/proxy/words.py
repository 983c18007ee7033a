"""The words of a request: typed by a person, or written by others. In doubt it was not typed."""

from collections.abc import Mapping
from typing import Any

from apps.gateway.proxy.body import Message, MessagesBody
from apps.gateway.typed import typed_text as without_elements

SMALL_ANSWER = 64
"""A request for at most so many tokens is one that a program makes for itself."""
OWN = frozenset({"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"})
"""Kinds of blocks in which nobody else's words stand."""


def is_side_request(body: MessagesBody, headers: Mapping[bytes, bytes]) -> bool:
    """Whether a program asks for itself or for a sub-agent, and not for what a person said."""
    fields = body.fields
    limit, choice = fields.get("max_tokens"), fields.get("tool_choice")
    small = isinstance(limit, int) and limit <= SMALL_ANSWER
    forced = isinstance(choice, dict) and choice.get("type") in {"tool", "any"}
    begins = all(message.role != "assistant" for message in body.messages)
    return small or (forced and begins) or any(name.endswith(b"-agent-id") for name in headers)


def typed_text(message: Message) -> str:
    """The text blocks of a user's message without the elements that programs put there."""
    parts = (without_elements(block["text"]) for block in message.blocks if _is_text(block))
    return "\n\n".join(part for part in parts if part)


def recent_texts(body: MessagesBody) -> list[str]:
    """The last messages, oldest first: typed by the person or answered to them, at most three messages."""
    found: list[str] = []
    for message in reversed(body.messages):
        if message.role == "user":
            text = typed_text(message)
        elif message.role == "assistant" and found:  # before what the person said last
            text = "\n\n".join(block["text"] for block in message.blocks if _is_text(block)).strip()
        else:
            continue
        if text:
            found.append(text)
        if len(found) == 3:
            break
    return found[::-1]


def last_typed(body: MessagesBody) -> int | None:
    """The place of the newest message in which the person typed something."""
    places = range(len(body.messages) - 1, -1, -1)
    users = (place for place in places if body.messages[place].role == "user")
    return next((place for place in users if typed_text(body.messages[place])), None)


def holds_others_words(body: MessagesBody) -> bool:
    """Whether the model reads in the request what neither the person nor itself wrote: a tool's result, a document, an element
    that a program added, a message of another role. What the program says in `system` and of its tools is its own, as whoever set it
    up chose it: nearly all say something there, and then all that is noted from them would wait for a review."""
    for message in body.messages:
        if message.role not in {"user", "assistant"}:
            return True
        for block in message.blocks:
            if not isinstance(block, dict) or block.get("type") not in OWN:
                return True
            if (
                message.role == "user"
                and _is_text(block)
                and without_elements(block["text"]) != block["text"].strip()
            ):
                return True
    return False


def is_others_block(kind: Any) -> bool:
    """Whether a block of an answer holds what others wrote: the result of a tool that the endpoint ran."""
    return isinstance(kind, str) and kind not in OWN


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
