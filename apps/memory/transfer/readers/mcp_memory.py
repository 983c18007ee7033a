"""The graph of the MCP memory server: entities, what is observed of them, and relations between them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from apps.core.errors import InvalidInput

from ..records import ForeignEdge, Read, Reader, Skipped, Upload, Wrong, content_key
from .archives import Document, documents
from .encoding import json_lines, json_whole, sketch, sketches
from .fields import (
    entries_in,
    fields_in,
    first_moment,
    first_text,
    kind_of,
    name_of,
    notes_of,
    relation_of,
    tags_of,
    text_of,
)

_TYPES = {"entity", "relation", "observation"}
_ENTITY = {"observations", "entityType"}
_RELATION = {"relationType", "relation_type"}
_GRAPH = {"entities", "relations"}


@dataclass(slots=True)
class _Entity:
    """An entity as all of its lines together say."""

    place: str
    name: str
    type: str = ""
    observations: list[tuple[str, str, datetime | None]] = field(
        default_factory=list
    )  # place, text, time
    created_at: datetime | None = None
    related: list[str] = field(default_factory=list)  # its relations in words


def matches(upload: Upload) -> bool:
    def fits(keys: frozenset[str]) -> bool:
        return bool(
            "observations" in keys
            or keys >= {"entityName", "contents"}
            or keys & {"item.observations", "entities.item.observations", "entities.item.entityType"}
            or (_RELATION & keys and keys & {"from", "from_id", "source"})
            or (keys >= _GRAPH and "agents" not in keys)
        ) and not keys & {
            "sessions",
            "prompts",
            "observations.item.title",
            "observations.item.narrative",
        }

    return any(map(fits, sketches(upload).values()))


def read(upload: Upload) -> Iterator[Read]:
    entities: dict[str, _Entity] = {}
    relations: list[tuple[str, str, str, str]] = []
    understood = 0
    for document in documents(upload):
        keys = sketch(document)
        if not keys:
            continue
        understood += keys >= _GRAPH
        for place, entry in _entries(document):
            if isinstance(entry, Wrong):
                yield entry
            elif problem := _taken(place, entry, entities, relations):
                yield problem
            else:
                understood += 1
    if not understood and not entities:
        raise InvalidInput("No line of this file is an entity or a relation of a memory graph.")
    yield from _records(entities, relations)


def _entries(document: Document) -> Iterator[tuple[str, Any]]:
    """(place, entry): lines, or the entries of one JSON value."""
    keys = sketch(document)
    if keys >= {"{"} and not keys & _GRAPH:
        yield from json_lines(document)
        return
    whole = json_whole(document)
    listed = [("entry", each) for each in entries_in(whole)]
    for name in ("entities", "relations", "observations"):
        listed += [(name, each) for each in entries_in(fields_in(whole).get(name))]
    for number, (name, each) in enumerate(listed, start=1):
        known = {"entities": "entity", "relations": "relation", "observations": "observation"}.get(name)
        typed = (
            {**each, "type": known}
            if known and isinstance(each, dict) and text_of(each.get("type")) not in _TYPES
            else each
        )
        yield f"{document.name}, {name} {number}", typed


def _taken(
    place: str, entry: object, entities: dict[str, _Entity], relations: list[tuple[str, str, str, str]]
) -> Read | None:
    """Keeps a line; what is wrong with it where it cannot be kept."""
    fields = fields_in(entry)
    if fields.get("type") == "relation" or _RELATION & fields.keys():
        ends = (
            first_text(fields, "from", "from_id", "source"),
            first_text(fields, "to", "to_id", "target"),
        )
        if not all(ends):
            return Wrong(place, "This relation does not say from what to what it leads.")
        named = first_text(fields, "relationType", "relation_type", "relation")
        relations.append((place, name_of(ends[0]), relation_of(named or "related"), name_of(ends[1])))
        return None
    name = name_of(first_text(fields, "name", "entityName", "id", "entity_name"))
    if not name or not (
        text_of(fields.get("type")) in _TYPES or _ENTITY & fields.keys() or "contents" in fields
    ):
        return Wrong(place, "It is neither an entity nor a relation.")
    entity = entities.setdefault(name, _Entity(place, name))
    typed = first_text(fields, "entityType", "entity_type")
    entity.type = (
        name_of(typed or (typed_so if (typed_so := text_of(fields.get("type"))) not in _TYPES else ""))
        or entity.type
    )
    entity.created_at = entity.created_at or first_moment(fields, "createdAt", "created_at", "created")
    observed = fields.get("observations", fields.get("contents"))
    for number, each in enumerate(observed if isinstance(observed, list) else [observed], start=1):
        inner = fields_in(each)
        if text := first_text(inner, "content", "text", "observation") or text_of(each):
            stamp = first_moment(inner, "createdAt", "created_at", "timestamp") or entity.created_at
            entity.observations.append((f"{place}, observation {number}", text, stamp))
    return None


def _records(entities: dict[str, _Entity], relations: list[tuple[str, str, str, str]]) -> Iterator[Read]:
    """A note for each observation, one for each entity that relations lead to or of which nothing is observed, and edges."""
    edges: dict[tuple[str, str, str], str] = {}
    for place, source, relation, target in relations:
        if source == target:
            yield Skipped(place, "This relation leads from an entity to itself.")
        elif (source, relation, target) in edges:
            yield Skipped(place, "This relation stands in the file more than once.")
        else:
            edges[source, relation, target] = place
            for name in (source, target):
                entities.setdefault(name, _Entity(place, name))
            entities[source].related.append(f"{source} {relation.replace('_', ' ')} {target}.")
    linked = {name for source, _, target in edges for name in (source, target)}
    for entity in entities.values():
        if entity.name in linked or not entity.observations:
            yield from _entity_note(entity)
        seen: set[str] = set()
        for place, text, stamp in entity.observations:
            key = content_key("observation", entity.name, text)
            if key in seen:
                yield Skipped(place, "The same observation stands in the file more than once.")
                continue
            seen.add(key)
            said = text if entity.name.casefold() in text.casefold() else f"{entity.name}: {text}"
            tags = tags_of([entity.name, entity.type])
            yield from notes_of(place, key, said, kind=kind_of(entity.type), tags=tags, created_at=stamp)
            if entity.name in linked:
                yield ForeignEdge(
                    place=place, source=key, target=_key(entity.name), relation="elaborates"
                )
    for (source, relation, target), place in edges.items():
        yield ForeignEdge(place=place, source=_key(source), target=_key(target), relation=relation)


def _entity_note(entity: _Entity) -> Iterator[Read]:
    typed = f" ({entity.type})" if entity.type else ""
    content = " ".join([f"{entity.name}{typed}.", *entity.related])
    tags = tags_of([entity.name, entity.type])
    yield from notes_of(
        entity.place, _key(entity.name), content, tags=tags, created_at=entity.created_at
    )


def _key(name: str) -> str:
    return content_key("entity", name)


reader = Reader(
    name="mcp-memory",
    title="MCP memory server (graph)",
    matches=matches,
    read=read,
    help="The file that MEMORY_FILE_PATH names: memory.jsonl, or memory.json of older versions.",
    rank=30,
)
