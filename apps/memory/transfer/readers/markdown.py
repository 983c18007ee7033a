"""Markdown: a folder (Obsidian, basic-memory, any) as a zip, or a file: notes with their links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from apps.core.errors import InvalidInput, IzzyError
from apps.core.text import truncated
from apps.memory.occasions.phrases import MAX_OCCASION_CHARS, MAX_OCCASIONS

from ..records import ForeignEdge, Read, Reader, Skipped, Upload, Wrong, content_key
from .archives import Document, documents
from .encoding import read_text, sketch
from .fields import (
    category_of,
    entries_in,
    kind_of,
    moment,
    name_of,
    notes_of,
    relation_of,
    tags_of,
    text_of,
)
from .front_matter import Markdown, Marks, markdown_of, marks_of
from .lists import is_list

SUFFIXES = {".md", ".markdown", ".mdx", ".mdc"}
_TIERS = {"short_term", "long_term"}
_CREATED = ("created", "created_at", "date created", "date", "createdat", "creation date")
_UPDATED = (
    "modified",
    "updated",
    "updated_at",
    "date modified",
    "last modified",
    "updatedat",
    "modified_at",
)


@dataclass(frozen=True, slots=True)
class _Page:
    """A file that can be linked to: where it is, and the key of the note that it becomes."""

    document: Document
    key: str


def matches(upload: Upload) -> bool:
    try:
        listed = documents(upload)
        if len(listed) > 1 or upload.head(2) == b"PK":
            texts = bool(listed) and all(document.suffix == ".txt" for document in listed)
            return texts or any(document.suffix in SUFFIXES for document in listed)
        if sketch(listed[0]):
            return False
        beginning = listed[0].head(2**16).decode("utf-8", "ignore").replace("\r\n", "\n")
        front = bool(markdown_of(beginning).front)
        return front or (listed[0].suffix in SUFFIXES and not is_list(beginning))
    except IzzyError:
        return False


def read(upload: Upload) -> Iterator[Read]:
    listed = documents(upload)
    of_markdown = (
        [each for each in listed if each.suffix in SUFFIXES | {".txt"}] if len(listed) > 1 else listed
    )
    if not of_markdown:
        raise InvalidInput("This archive holds no Markdown files.")
    pages: dict[str, _Page] = {}
    of_keys: dict[str, str] = {}
    known: dict[str, str] = {}  # name, folded, to the name of the file
    for document in of_markdown:
        try:
            text = read_text(document)
        except IzzyError as error:
            yield Wrong(document.name, error.message)
            continue
        page = markdown_of(text)
        if not page.body.strip() and not page.first("title", "description"):
            yield Skipped(document.name, "The file is empty.")
            continue
        foreign = page.first("id", "uid", "permalink")
        key = content_key("page", foreign or document.stem, "" if foreign else page.body)
        first = of_keys.setdefault(key, document.name)
        if first == document.name:
            pages[document.name] = _Page(document, key)
        else:
            yield Skipped(document.name, f"It holds the same as {first}.")
        for name in _names(document, page):
            known.setdefault(name, first)
    for page_found in pages.values():
        yield from _page(page_found, pages, known)
    if others := len(listed) - len(of_markdown):
        yield Skipped(
            upload.name or "the archive",
            f"{others} files that are no Markdown, such as pictures, are left out.",
        )


def _names(document: Document, page: Markdown) -> list[str]:
    """The names by which a link may call a file: its path, its name, its title, its aliases, its permalink."""
    path = PurePosixPath(document.name)
    paths = ["/".join(path.with_suffix("").parts[start:]) for start in range(len(path.parts))]
    aliases = entries_in(page.front.get("aliases")) or [
        page.front.get("aliases"),
        page.front.get("alias"),
    ]
    names = [
        *paths,
        page.first("title"),
        page.first("permalink"),
        page.first("name"),
        *map(text_of, aliases),
    ]
    return [name.casefold() for name in names if name]


def _page(found: _Page, pages: dict[str, _Page], known: dict[str, str]) -> Iterator[Read]:
    document = found.document
    page = markdown_of(read_text(document))
    marks = marks_of(page.body)
    title = name_of(page.first("title") or document.stem)
    dated = re.search(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)", document.stem)  # a page of a diary
    updated = page.moment(*_UPDATED) or document.modified
    created = page.moment(*_CREATED) or (moment(dated[0]) if dated else None) or updated
    shared: dict[str, Any] = {"created_at": created, "updated_at": updated}
    tags = tags_of(page.front.get("tags"), page.front.get("tag"), page.front.get("keywords"))
    of_izzy = {"trust", "origin", "importance"} <= page.front.keys()  # its own notes have no titles
    own = marks.prose.strip().removesuffix("## Relations").strip() if of_izzy else ""
    prose = own or _content(title, marks, page.first("description"))
    yield from notes_of(
        document.name, found.key, prose, tags=tags_of(tags, marks.tags), **_fields(page), **shared
    )
    seen: set[str] = set()
    for observation in marks.observations:
        place = f"{document.name}, line {page.line + observation.line}"
        headed = title.casefold() in observation.text.casefold()
        said = observation.text if headed else f"{title}: {observation.text}"
        key = content_key("observation", title, observation.category, observation.text)
        if key not in seen:
            seen.add(key)
            of_line = tags_of([observation.category], observation.tags, tags)
            yield from notes_of(
                place, key, said, kind=kind_of(observation.category), tags=of_line, **shared
            )
            yield ForeignEdge(place=place, source=key, target=found.key, relation="elaborates")
    yield from _links(found, marks, pages, known)


def _links(found: _Page, marks: Marks, pages: dict[str, _Page], known: dict[str, str]) -> Iterator[Read]:
    """Edges to the pages that links lead to; a link that leads nowhere stays text."""
    named = {(relation, known.get(_target(target), "")) for relation, target in marks.relations}
    for relation, name in sorted(named):
        if name in pages and name != found.document.name:
            yield ForeignEdge(
                place=found.document.name,
                source=found.key,
                target=pages[name].key,
                relation=relation_of(relation),
            )


def _target(link: str) -> str:
    return re.sub(r"\.(md|markdown)$", "", link.strip().lstrip("/"), flags=re.IGNORECASE).casefold()


def _content(title: str, marks: Marks, description: str) -> str:
    """The prose under its title; of a page of observations alone the title and what it is related to."""
    prose = marks.prose
    if marks.observations or len(marks.relations) > 0:
        prose = re.sub(
            r"^#{1,6}[ \t]+[^\n]*\n*(?=#{1,6}[ \t]|\Z)", "", prose, flags=re.MULTILINE
        ).strip()  # empty sections
    heading = re.match(r"#{1,6}[ \t]+(.*)", prose)
    if heading and heading[1].strip().casefold() == title.casefold():
        title = ""
    related = "\n".join(f"{relation.replace('_', ' ')} {target}" for relation, target in marks.stated)
    parts = [title, description if description not in prose else "", prose, related]
    return "\n\n".join(part for part in parts if part) or title or "Untitled"


def _fields(page: Markdown) -> dict[str, Any]:
    """Izzy's own fields, as the front matter gives them."""
    importance = page.first("importance")
    tier = page.first("tier").lower()
    given = [" ".join(text_of(each).split()) for each in entries_in(page.front.get("occasions"))]
    occasions = [truncated(each, MAX_OCCASION_CHARS) for each in given if each][:MAX_OCCASIONS]
    return {
        "kind": kind_of(page.first("kind", "type", "category")),
        "category": category_of(page.first("category")),
        "importance": int(importance) if importance in {"1", "2", "3", "4", "5"} else None,
        "tier": tier if tier in _TIERS else None,
        "occasions": occasions,
        "archived": page.first("status").lower() == "archived",
        "valid_from": page.moment("valid_from"),
        "valid_to": page.moment("valid_to"),
    }


reader = Reader(
    name="markdown",
    title="Markdown (folder as a zip, or a file)",
    matches=matches,
    read=read,
    help="Pack the folder (an Obsidian vault, basic-memory's project, any notes) as a zip, or upload one file.",
    rank=80,
)
