"""ChatGPT's export: conversations as trees of messages, in one file or in shards, and what ChatGPT was asked to remember."""

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from apps.core.errors import InvalidInput

from ..records import ForeignMessage, Read, Reader, Skipped, Upload, Wrong, content_key
from .archives import Document, documents
from .encoding import json_items, json_whole, sketch, sketches
from .fields import (
    entries_in,
    fields_in,
    first_moment,
    key_of,
    moment,
    notes_of,
    text_of,
)
from .lists import listed_memories
from .talk import Role, branch, branch_and_rest, conversation, messages_of, newest_leaf

_CONVERSATIONS = re.compile(r"(^|/)conversations[^/]*\.json$")
_MEMORIES = re.compile(r"(^|/)(saved_)?memor(y|ies)[^/]*\.json$")
_SIGNS = ("chat.html", "export_manifest.json", "message_feedback.json", "user_settings.json")
_BESIDE = ("current_node", "title", "create_time", "conversation_id", "id", "moderation_results")
_NO_TALK = re.compile(
    r"code|thoughts|reasoning_recap|user_editable_context|model_editable_context|execution_output|system_error|"
    r"tether_.*|citable_code_output|computer_output|app_pairing_content|sonic_webpage"
)
_CITATION = re.compile(
    r"(?<![ \t])[ \t]*\ue200([^\ue200-\ue202]*)\ue202?([^\ue200\ue201]*)\ue201|【\d+(?::\d+)?†[^【】]*】"
)
_FORGET = re.compile(r"(?:please )?(?:forget|delete|remove)\b", re.IGNORECASE)


def matches(upload: Upload) -> bool:
    found = sketches(upload)
    if any(map(_is_talk_file, found.values())):
        return True
    names = {name.rpartition("/")[2] for name in found}
    if not any(map(_CONVERSATIONS.search, found)):
        return False
    return bool(names.intersection(_SIGNS)) or any(
        document.base in _SIGNS for document in documents(upload)
    )


def _is_talk_file(keys: frozenset[str]) -> bool:
    """Whether a JSON file begins with a conversation, or a list of them."""
    return any(
        f"{prefix}mapping" in keys and keys & {f"{prefix}{name}" for name in _BESIDE}
        for prefix in ("item.", "", "conversations.item.")
    )


def read(upload: Upload) -> Iterator[Read]:
    seen: set[str] = set()
    snapshots: list[tuple[float, str, str]] = []
    listed = documents(upload)
    of_talk = (
        [each for each in listed if _CONVERSATIONS.search(each.name)] if len(listed) > 1 else listed
    )
    for document in of_talk:
        yield from _once(_conversations(document, snapshots), seen)
    if not of_talk:
        raise InvalidInput(
            "This archive holds no conversations.json: it is not ChatGPT's export, or not all of it."
        )
    for document in listed:
        if document not in of_talk and _MEMORIES.search(document.name):
            yield from _once(listed_memories(document.name, json_whole(document)), seen)
    if snapshots:
        _, place, text = max(snapshots)
        yield from _once(_snapshot(place, text), seen)


def _once(found: Iterator[Read], seen: set[str]) -> Iterator[Read]:
    """The records; what came before under the same key is skipped."""
    for record in found:
        key = getattr(record, "key", "")
        if key and key in seen:
            yield Skipped(record.place, "It stands in this export more than once.")
            continue
        seen.add(key)
        yield record


def _conversations(document: Document, snapshots: list[tuple[float, str, str]]) -> Iterator[Read]:
    single = "{" in sketch(document)
    entries = (
        entries_in(whole) or [whole]
        if single and (whole := _unwrapped(document))
        else json_items(document)
    )
    for number, entry in enumerate(entries, start=1):
        place = f"{document.name}, entry {number}"
        if not isinstance(entry, dict) or not isinstance(entry.get("mapping"), dict):
            yield Wrong(
                place, "It is not a conversation: it has no messages in the form that ChatGPT writes."
            )
            continue
        if entry.get("is_do_not_remember") is True:
            yield Skipped(place, "ChatGPT was asked not to remember this conversation.")
            continue
        yield from _conversation(place, entry, snapshots)


def _unwrapped(document: Document) -> Any:
    """A single conversation, or the list in an object around it."""
    whole = fields_in(json_whole(document))
    return entries_in(whole.get("conversations")) or entries_in(whole.get("items")) or whole


def _conversation(
    place: str, entry: dict[str, Any], snapshots: list[tuple[float, str, str]]
) -> Iterator[Read]:
    nodes = {str(key): node for key, node in entry["mapping"].items() if isinstance(node, dict)}
    parents = _parents(nodes)
    times = {
        key: moment(fields_in(node.get("message")).get("create_time")) for key, node in nodes.items()
    }
    leaf = text_of(entry.get("current_node"))
    leaf_found = leaf if leaf in nodes else newest_leaf(parents, times)
    said = {key: _said(key, node, times[key]) for key, node in nodes.items()}
    shown, left = branch_and_rest(leaf_found, parents, said)
    for key in branch(leaf_found, parents.get):
        message = fields_in(nodes[key].get("message"))
        content = fields_in(message.get("content"))
        if content.get("content_type") == "model_editable_context":
            if text := text_of(content.get("model_set_context")):
                stamp = times[key] or moment(entry.get("update_time"))
                snapshots.append((stamp.timestamp() if stamp else 0.0, place, text))
        elif text_of(message.get("recipient")) == "bio" and _role(message) == "assistant":
            yield from _remembered(place, message)
    key = key_of(entry.get("conversation_id") or entry.get("id"), *(message.key for message in shown))
    created, updated = moment(entry.get("create_time")), moment(entry.get("update_time"))
    yield conversation(place, key, entry.get("title"), shown, created, updated, left)


def _said(key: str, node: dict[str, Any], at: datetime | None) -> list[ForeignMessage]:
    message = fields_in(node.get("message"))
    content = fields_in(message.get("content"))
    if not _is_talk(message, content):
        return []
    role: Role = "user" if _role(message) == "user" else "assistant"
    return messages_of(message.get("id") or key, role, _words(content), at)


def _parents(nodes: dict[str, dict[str, Any]]) -> dict[str, str | None]:
    """Each node's parent, by what it says or by whose child it is; None where there is none."""
    of_children = {
        str(child): key for key, node in nodes.items() for child in entries_in(node.get("children"))
    }
    named = {key: text_of(node.get("parent")) or of_children.get(key) for key, node in nodes.items()}
    return {key: parent if parent in nodes else None for key, parent in named.items()}


def _role(message: dict[str, Any]) -> str:
    author = message.get("author")
    return text_of(fields_in(author).get("role")) or text_of(author)


def _is_talk(message: dict[str, Any], content: dict[str, Any]) -> bool:
    """Whether a person saw the message as something that the user or ChatGPT said."""
    about = fields_in(message.get("metadata"))
    return not (
        _role(message) not in {"user", "assistant"}
        or about.get("is_visually_hidden_from_conversation") is True
        or about.get("is_user_system_message") is True
        or _NO_TALK.fullmatch(text_of(content.get("content_type")))
        or text_of(message.get("channel")) == "analysis"
        or (_role(message) == "assistant" and text_of(message.get("recipient")) not in {"", "all"})
    )


def _words(content: dict[str, Any]) -> str:
    """The text of the parts; of those that are no text, such as pictures, what was spoken in them."""
    parts = content.get("parts", content.get("text"))
    listed = parts if isinstance(parts, list) else [parts]
    texts = [text_of(part.get("text") if isinstance(part, dict) else part) for part in listed]
    return "\n".join(filter(None, (_CITATION.sub(_cited, text).strip() for text in texts)))


def _cited(found: re.Match[str]) -> str:
    """A mark that ChatGPT's page draws: the name where it stands for one, nothing where it is a source."""
    if found[1] != "entity":
        return ""
    try:
        named = json.loads(found[2])
    except ValueError:
        return ""
    return f" {text_of(named[1])}" if isinstance(named, list) and len(named) > 1 else ""


def _remembered(place: str, message: dict[str, Any]) -> Iterator[Read]:
    """The memories that ChatGPT saved with its tool `bio`."""
    text = _words(fields_in(message.get("content")))
    if not text:
        return
    if _FORGET.match(text):
        yield Skipped(place, "Here ChatGPT was asked to forget something.")
        return
    created = first_moment(message, "create_time", "update_time")
    yield from notes_of(place, _key(text), text, tags=["chatgpt"], created_at=created)


def _snapshot(place: str, text: str) -> Iterator[Read]:
    """The newest list of memories that ChatGPT had beside a conversation: `1. [2025-05-02]. The user likes tea.`"""
    for line in text.splitlines():
        found = re.match(r"\s*(?:\d+\.|[-*])\s*(?:\[([^\]]*)\]\.?\s*)?(\S.*)", line)
        if found:
            body = text_of(found[2])
            yield from notes_of(place, _key(body), body, tags=["chatgpt"], created_at=moment(found[1]))


def _key(text: str) -> str:
    return content_key("memory", " ".join(text.casefold().split()).rstrip("."))


reader = Reader(
    name="chatgpt",
    title="ChatGPT (data export)",
    matches=matches,
    read=read,
    help="ChatGPT: Settings, Data controls, Export data. Upload the zip as it came, or its conversations.json.",
    rank=20,
)
