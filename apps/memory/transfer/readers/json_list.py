"""JSON of a program that has no reader of its own: a list, or JSON Lines, of texts or of objects with a text."""

from collections.abc import Iterator

from apps.core.errors import InvalidInput, IzzyError

from ..records import ForeignMessage, Read, Reader, Upload, Wrong, content_key
from .archives import Document, documents
from .encoding import json_items, json_lines, json_whole, sketch, sketches
from .fields import fields_in, first_moment, joined, key_of, text_of
from .lists import CONTENT, LISTS, list_in, memory_of
from .talk import conversation, messages_of

_PREFIXES = ("item", *(f"{name}.item" for name in LISTS))


def _fits(keys: frozenset[str]) -> bool:
    inner = any(f"{prefix}.{name}" in keys for prefix in _PREFIXES for name in CONTENT)
    return inner or keys == {"["} or bool(keys & {*CONTENT, "memories", "facts", "saved_memories"})


def matches(upload: Upload) -> bool:
    found = sketches(upload)
    try:
        others = sum(document.suffix in {".md", ".markdown", ".csv"} for document in documents(upload))
    except IzzyError:
        return False
    return sum(map(_fits, found.values())) > others


def read(upload: Upload) -> Iterator[Read]:
    understood = False
    for document in documents(upload):
        keys = sketch(document)
        if not keys:
            continue
        if keys >= {"item.role", "item.content"}:
            understood = True
            yield _messages(document)
        elif "[" in keys:
            understood = True
            for number, entry in enumerate(json_items(document), start=1):
                yield from memory_of(f"{document.name}, entry {number}", entry)
        elif keys & set(LISTS) and (listed := list_in(json_whole(document))) is not None:
            understood = True
            for number, entry in enumerate(listed, start=1):
                yield from memory_of(f"{document.name}, entry {number}", entry)
        else:
            for place, entry in json_lines(document):
                understood = True
                yield from [entry] if isinstance(entry, Wrong) else memory_of(place, entry)
    if not understood:
        raise InvalidInput("This JSON holds no list of memories.")


def _messages(document: Document) -> Read:
    """A bare list of messages, as programs send it to a model: one conversation."""
    said: list[ForeignMessage] = []
    for number, entry in enumerate(json_items(document)):
        fields = fields_in(entry)
        content = fields.get("content")
        parts = (
            [fields_in(part).get("text") for part in content] if isinstance(content, list) else [content]
        )
        words, role = joined([text_of(part) for part in parts]), text_of(fields.get("role"))
        created = first_moment(fields, "created_at", "timestamp")
        if role in {"user", "assistant"}:
            key = key_of(fields.get("id"), f"{number}", role, words)
            said += messages_of(key, "user" if role == "user" else "assistant", words, created)
    return conversation(
        document.name, content_key(*(message.key for message in said)), document.stem, said
    )


reader = Reader(
    name="json",
    title="JSON (a list of memories)",
    matches=matches,
    read=read,
    help="A list, or JSON Lines, of texts or of objects with a field content, text, memory or note.",
    rank=70,
)
