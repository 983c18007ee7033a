"""Open WebUI: exports of chats, one or all, and of its memories."""

from collections.abc import Iterator
from typing import Any

from apps.core.errors import InvalidInput

from ..records import ForeignMessage, Read, Reader, Upload, Wrong, content_key
from .archives import Document, documents
from .encoding import json_items, json_whole, sketch, sketches
from .fields import entries_in, fields_in, first_moment, first_text, joined, key_of, text_of
from .lists import memory_of
from .talk import branch_and_rest, conversation, messages_of, newest_leaf, without_reasoning

_CHAT = (
    *({"item.chat"}, {"chats.item.chat"}, {"chat", "user_id"}, {"chat.history"}, {"chat.messages"}),
    *(
        {"item.history", "item.title"},
        {"history.messages", "history.currentId"},
        {"item.history.messages"},
    ),
)
_MEMORY = {"item.id", "item.user_id", "item.content"}


def _is_chats(keys: frozenset[str]) -> bool:
    return any(keys >= chat for chat in _CHAT)


def _is_memories(keys: frozenset[str]) -> bool:
    return keys >= _MEMORY and not keys & {"item.memory", "item.state", "item.role"}


def matches(upload: Upload) -> bool:
    return any(_is_chats(keys) or _is_memories(keys) for keys in sketches(upload).values())


def read(upload: Upload) -> Iterator[Read]:
    understood = False
    for document in documents(upload):
        keys = sketch(document)
        if _is_chats(keys):
            for place, entry in _entries(document, keys):
                understood = True
                yield _conversation(place, entry)
        elif _is_memories(keys):
            for number, entry in enumerate(json_items(document), start=1):
                understood = True
                yield from memory_of(f"{document.name}, entry {number}", entry)
        understood = understood or "[" in keys
    if not understood:
        raise InvalidInput("This file holds no chats or memories in the form that Open WebUI writes.")


def _entries(document: Document, keys: frozenset[str]) -> Iterator[tuple[str, Any]]:
    if "[" in keys:
        listed: Any = json_items(document)
    else:
        whole = fields_in(json_whole(document))
        listed = entries_in(whole.get("chats")) or [whole]
    for number, entry in enumerate(listed, start=1):
        yield f"{document.name}, entry {number}", entry


def _conversation(place: str, entry: object) -> Read:
    row = fields_in(entry)
    chat = fields_in(row.get("chat")) or row
    history = fields_in(chat.get("history"))
    messages = _messages(history.get("messages")) or _messages(chat.get("messages"))
    if not row or not (history or isinstance(chat.get("messages"), list)):
        return Wrong(place, "It is not a chat: it has no messages in the form that Open WebUI writes.")
    parents = _parents(messages, in_tree=bool(history))
    times = {key: first_moment(message, "timestamp", "created_at") for key, message in messages.items()}
    leaf = first_text(history, "currentId") or first_text(row, "current_message_id")
    identity = first_text(row, "id") or first_text(chat, "id")
    said: dict[str, list[ForeignMessage]] = {}
    for key, message in messages.items():
        role, named, words = text_of(message.get("role")), _key(identity, message, key), _words(message)
        said[key] = []
        if role == "user":
            said[key] = messages_of(named, "user", words, times[key])
        elif role == "assistant":
            said[key] = messages_of(named, "assistant", without_reasoning(words), times[key])
    shown, left = branch_and_rest(
        leaf if leaf in messages else newest_leaf(parents, times), parents, said
    )
    title = first_text(row, "title") or first_text(chat, "title", "name")
    created = first_moment(row, "created_at") or first_moment(chat, "timestamp", "created_at")
    updated = first_moment(row, "updated_at") or first_moment(chat, "updated_at")
    named = key_of(identity, *(message.key for message in shown))
    return conversation(place, named, title, shown, created, updated, left)


def _key(identity: str, message: dict[str, Any], key: str) -> str:
    return text_of(message.get("id")) or (content_key(identity, key) if identity else "")


def _messages(value: object) -> dict[str, dict[str, Any]]:
    """Messages by id, of an object or a list."""
    if isinstance(value, dict):
        return {key: message for key, message in value.items() if isinstance(message, dict)}
    listed = [message for message in entries_in(value) if isinstance(message, dict)]
    return {text_of(message.get("id")) or f"{number}": message for number, message in enumerate(listed)}


def _parents(messages: dict[str, dict[str, Any]], *, in_tree: bool) -> dict[str, str | None]:
    """Each message's parent: the one it names, in a plain list the one before."""
    found: dict[str, str | None] = {}
    of_children = {
        text_of(child): key
        for key, message in messages.items()
        for child in entries_in(message.get("childrenIds"))
    }
    before: str | None = None
    for key, message in messages.items():
        named = first_text(message, "parentId", "parent_id") or of_children.get(key, "")
        found[key] = (
            named if named in messages else None if in_tree and "parentId" in message else before
        )
        before = key
    return found


def _words(message: dict[str, Any]) -> str:
    """The message's text; since version 0.10 an answer has it in the messages among its output alone."""
    content = message.get("content")
    items = [fields_in(item) for item in entries_in(message.get("output"))]
    parts = [
        part
        for item in items
        if item.get("type") == "message"
        for part in entries_in(item.get("content"))
    ]
    return text_of(content) or joined(
        [text_of(fields_in(part).get("text")) for part in entries_in(content) or parts]
    )


reader = Reader(
    name="open-webui",
    title="Open WebUI (chats, memories)",
    matches=matches,
    read=read,
    help="Open WebUI: Settings, Chats, Export chats; or the JSON of its memories.",
    rank=25,
)
