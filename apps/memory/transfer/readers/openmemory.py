"""OpenMemory's backup: a zip with its tables in memories.json and the memories once more in memories.jsonl.gz."""

from collections.abc import Iterator
from typing import Any

from apps.core.errors import InvalidInput

from ..records import Read, Reader, Upload, Wrong
from .archives import Document, documents
from .encoding import json_lines, json_whole, sketch, sketches
from .fields import entries_in, fields_in, text_of
from .lists import memory_of

_TABLES = {"memories", "categories", "apps"}
_LINE = {"content", "state", "app", "categories"}


def matches(upload: Upload) -> bool:
    return any(
        keys >= _TABLES or keys >= _LINE or keys >= {"memories", "export_meta"}
        for keys in sketches(upload).values()
    )


def read(upload: Upload) -> Iterator[Read]:
    seen: set[str] = set()
    understood = False
    for document in documents(upload):
        keys = sketch(document)
        of_lines = document.suffix == ".jsonl" or "content" in keys
        entries = (
            _of_tables(document)
            if "memories" in keys
            else json_lines(document)
            if of_lines
            else iter(())
        )
        for place, entry in entries:
            understood = True
            identity = text_of(fields_in(entry).get("id"))
            if isinstance(entry, Wrong):
                yield entry
            elif identity not in seen:  # the backup holds everything twice
                seen.update(filter(None, [identity]))
                yield from memory_of(place, entry)
        understood = understood or "memories" in keys
    if not understood:
        raise InvalidInput("This archive holds no memories.json in the form that OpenMemory writes.")


def _of_tables(document: Document) -> Iterator[tuple[str, Any]]:
    """The rows of the table of memories, with the names of their categories."""
    whole = fields_in(json_whole(document))
    names = {
        text_of(row.get("id")): row.get("name")
        for row in entries_in(whole.get("categories"))
        if isinstance(row, dict)
    }
    of_memories: dict[str, list[str]] = {}
    for row in entries_in(whole.get("memory_categories")):
        pair = fields_in(row)
        of_memories.setdefault(text_of(pair.get("memory_id")), []).append(
            text_of(pair.get("category_id"))
        )
    for number, row in enumerate(entries_in(whole.get("memories")), start=1):
        fields = fields_in(row)
        ids = [text_of(each) for each in entries_in(fields.get("category_ids"))] or of_memories.get(
            text_of(fields.get("id")), []
        )
        yield (
            f"{document.name}, entry {number}",
            fields | {"tags": [names[each] for each in ids if each in names]},
        )


reader = Reader(
    name="openmemory",
    title="OpenMemory (backup)",
    matches=matches,
    read=read,
    help="The zip that OpenMemory's export gave (memories.json and memories.jsonl.gz).",
    rank=35,
)
