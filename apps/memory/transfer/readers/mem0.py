"""mem0: what its library, its platform and its plugin export."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from apps.core.errors import InvalidInput, IzzyError

from ..records import Read, Reader, Skipped, Upload
from .archives import Document, documents
from .encoding import json_lines, json_whole, read_text, sketch, sketches
from .fields import entries_in, fields_in, first_text, key_of, kind_of, moment, notes_of, tags_of
from .lists import list_in, memory_of

_HEADER = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)[ \t]*:[ \t]*(.*)")
_FIELDS = {"id", "created_at", "updated_at", "type", "confidence", "branch", "files", "categories"}
_OWN = {"confidence", "branch", "files"}
"""Of its fields those that notes of other programs have not."""

_TEXTS = {".md", ".markdown", ".txt", ""}


def matches(upload: Upload) -> bool:
    if any(_is_mem0(keys) for keys in sketches(upload).values()):
        return True
    try:
        texts = [each for each in documents(upload)[:20] if _is_text(each)]
        return any(_is_exported(_beginning(each)) for each in texts)
    except IzzyError:
        return False


def _is_mem0(keys: frozenset[str]) -> bool:
    prefixes = ("results.item", "memories.item", "item")
    found = any(f"{prefix}.memory" in keys for prefix in prefixes) or keys >= {"memory", "hash"}
    return found or keys >= {"memory", "user_id"}


def _is_text(document: Document) -> bool:
    return document.suffix in _TEXTS and not sketch(document)


def _is_exported(text: str) -> bool:
    """Whether it holds blocks of the plugin's: notes of other programs have an id and a type too, but one block at their head and no
    field of its own."""
    found = _blocks(text)
    return len(found) > 1 or any(not _OWN.isdisjoint(header) for _, header, _ in found)


def _beginning(document: Document) -> str:
    return document.head(4096).decode("utf-8", "ignore").lstrip("\ufeff").replace("\r\n", "\n")


def read(upload: Upload) -> Iterator[Read]:
    understood = False
    for document in documents(upload):
        keys = sketch(document)
        if _is_text(document):
            for place, header, content in _blocks(read_text(document), document.name):
                understood = True
                yield from _block(place, header, content)
        elif keys >= {"{", "memory"} and not keys & {"results", "memories"}:
            for place, entry in json_lines(document):
                understood = True
                yield from (
                    [entry] if not isinstance(entry, dict | list | str) else memory_of(place, entry)
                )
        elif keys:
            whole = json_whole(document)
            understood = understood or list_in(whole) is not None
            yield from _export(document.name, whole)
    if not understood:
        raise InvalidInput("This file holds no memories in a form that mem0 writes.")


def _export(name: str, whole: object) -> Iterator[Read]:
    fields = fields_in(whole)
    listed = list_in(whole) or []
    for number, entry in enumerate(listed, start=1):
        yield from memory_of(f"{name}, entry {number}", entry)
    for number, relation in enumerate(entries_in(fields.get("relations")), start=1):
        inner = fields_in(relation)
        ends = first_text(inner, "source", "from"), first_text(inner, "target", "destination", "to")
        words = first_text(inner, "relationship", "relation", "relationType").replace("_", " ")
        place = f"{name}, relation {number}"
        if all(ends):
            said = f"{ends[0]} {words or 'is related to'} {ends[1]}"
            yield from notes_of(place, key_of("", "relation", said), said, tags=["mem0"])
        else:
            yield Skipped(place, "This relation does not say from what to what it leads.")
    if fields.get("next"):
        count = first_text(fields, "count") or "more"
        yield Skipped(
            name,
            f"This is one page of an export: {len(listed)} of {count} memories. Import the other pages too.",
        )


def _blocks(text: str, name: str = "") -> list[tuple[str, dict[str, str], str]]:
    """(place, fields, text) of the blocks of the plugin's export; rules (`---`) within a memory stay what they are."""
    lines = text.replace("\r\n", "\n").split("\n")
    starts = [
        number
        for number, line in enumerate(lines)
        if line.rstrip() == "---" and _header_end(lines, number)
    ]
    found = []
    for start, following in pairwise([*starts, len(lines)]):
        end = _header_end(lines, start)
        header = {
            match[1]: match[2].strip().strip("\"'")
            for line in lines[start + 1 : end]
            if (match := _HEADER.match(line))
        }
        found.append(
            (f"{name}, line {start + 1}", header, "\n".join(lines[end + 1 : following]).strip())
        )
    return found


def _header_end(lines: list[str], start: int) -> int:
    """The line that closes the block of fields opened at a line; 0 where none is opened there."""
    names: set[str] = set()
    for number in range(start + 1, min(start + 30, len(lines))):
        if lines[number].rstrip() == "---":
            return number if "id" in names and len(names) > 1 and names & _FIELDS - {"id"} else 0
        found = _HEADER.fullmatch(lines[number].rstrip())
        if not found and lines[number].strip():
            return 0
        if found:
            names.add(found[1])
    return 0


def _block(place: str, header: dict[str, str], content: str) -> Iterator[Read]:
    if not content:
        yield Skipped(place, "It has no text.")
        return
    values: dict[str, Any] = {
        "kind": kind_of(header.get("type")),
        "tags": tags_of(header.get("categories"), header.get("type"), header.get("tags")),
        "created_at": moment(header.get("created_at")),
        "updated_at": moment(header.get("updated_at")),
    }
    yield from notes_of(place, key_of(header.get("id"), content), content, **values)


reader = Reader(
    name="mem0",
    title="mem0 (export)",
    matches=matches,
    read=read,
    help="What get_all() gives as JSON, from the library or the platform, or the Markdown file of mem0's plugin.",
    rank=40,
)
