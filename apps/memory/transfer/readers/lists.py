"""Lists of memories: JSON of texts or objects in whatever spelling, and plain text with one memory a line or bullet."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..records import Read, Skipped, Wrong, content_key
from .fields import (
    fields_in,
    first_moment,
    first_text,
    key_of,
    kind_of,
    moment,
    notes_of,
    tags_of,
    text_of,
)

CONTENT = (
    "memory",
    "content",
    "text",
    "note",
    "fact",
    "value",
    "data",
    "body",
    "narrative",
    "summary",
    "description",
)
CREATED = (
    "created_at",
    "createdAt",
    "created",
    "create_time",
    "created_timestamp",
    "timestamp",
    "date",
    "created_at_epoch",
)
UPDATED = (
    "updated_at",
    "updatedAt",
    "updated",
    "update_time",
    "modified_at",
    "modified",
    "last_updated",
    "updated_timestamp",
)
LISTS = (
    "memories",
    "results",
    "items",
    "notes",
    "facts",
    "data",
    "entries",
    "observations",
    "saved_memories",
)
_DONE = {"deleted", "forgotten", "removed", "obsolete"}


def list_in(value: object) -> list[Any] | None:
    """The list of memories that a JSON value is, or has in one of its usual fields; None where there is none."""
    if isinstance(value, list):
        return value
    return next((found for name in LISTS if isinstance(found := fields_in(value).get(name), list)), None)


def listed_memories(name: str, value: object) -> Iterator[Read]:
    """A JSON list of memories: texts, or objects with their text under one of CONTENT."""
    for number, entry in enumerate(list_in(value) or [], start=1):
        yield from memory_of(f"{name}, entry {number}", entry)


def memory_of(place: str, entry: object) -> Iterator[Read]:
    """The note or notes of an entry in a list of memories."""
    fields = fields_in(entry) or ({"content": entry} if text_of(entry) else {})
    metadata = fields_in(fields.get("metadata")) or fields_in(fields.get("metadata_"))
    content = first_text(fields, *CONTENT) or first_text(metadata, *CONTENT)
    if not fields:
        yield Wrong(place, "It is neither a text nor an object with a text.")
        return
    if not content:
        yield Skipped(place, "It has no text.")
        return
    state = text_of(fields.get("state") or fields.get("status")).lower()
    off = fields.get("enabled") is False or fields.get("is_deleted") is True or fields.get("deleted_at")
    if off or state in _DONE:
        yield Skipped(place, "It was switched off or deleted there.")
        return
    title = first_text(fields, "title")
    body = f"{title}\n\n{content}" if title and not content.startswith(title) else content
    times = fields_in(fields.get("timestamps")) or fields
    types = [fields.get("type"), metadata.get("type"), fields.get("kind"), metadata.get("kind")]
    kind = next((found for found in map(kind_of, types) if found), None)
    tags = [each.get(name) for name in ("tags", "categories", "category") for each in (fields, metadata)]
    yield from notes_of(
        place,
        key_of(fields.get("id") or fields.get("uuid") or fields.get("memory_id"), body),
        body,
        kind=kind,
        tags=tags_of(*tags),
        archived=state in {"archived", "paused"}
        or bool(fields.get("archived_at") or fields.get("archived")),
        created_at=first_moment(times, *CREATED) or first_moment(metadata, *CREATED),
        updated_at=first_moment(times, *UPDATED) or first_moment(metadata, *UPDATED),
        valid_to=first_moment(fields, "expiration_date", "expires_at", "valid_to", "invalid_at"),
        valid_from=first_moment(fields, "valid_from", "valid_at"),
    )


@dataclass(frozen=True, slots=True)
class ListLine:
    """A memory of a plain list: its text, the headings it stands under, the date in front of it, and its line from 1."""

    number: int
    text: str
    headings: tuple[str, ...] = ()
    date: str = ""
    outside: bool = False  # of the list: what the assistant says before or after it


_BULLET = re.compile(r"^(\s*)(?:[-*•‣◦▪–—·+]|\(?\d{1,4}[.)]|\[[ xX]\])\s+(?:\[[ xX]\]\s+)?(.*)$")
_HEADING = re.compile(r"^(?:#{1,6}\s+(.+?)\s*#*|\*\*([^*]+?):?\*\*:?|__([^_]+?):?__:?)$")
_DATED = re.compile(
    r"^(?:\[([^\]]{4,40})\]|(\d{4}-\d{2}-\d{2}(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?))\s*[.:–—-]*\s+(\S.*)$",
    re.DOTALL,
)
_NO_DATE = re.compile(
    r"(?:date )?(?:unknown|not available|n/a|no date|undated|date saved.*)", re.IGNORECASE
)


def lines_of(text: str) -> list[ListLine]:
    """The memories of a plain list: a bullet each where there are bullets, else a line each.

    Lines of headings become headings of what follows, indented lines go on with the bullet above, fences are left out.
    """
    raw = [
        line for line in enumerate(text.split("\n"), start=1) if not re.match(r"\s*(?:```|~~~)", line[1])
    ]
    bulleted = sum(bool(_BULLET.match(line)) for _, line in raw) >= 2
    found: list[ListLine] = []
    bullets: set[int] = set()
    heading = ""
    joins = False  # whether the line before may go on in this one
    for number, line in raw:
        stripped = line.strip()
        title = _HEADING.match(stripped)
        bullet = _BULLET.match(line) if bulleted or not found else None
        if not stripped or re.fullmatch(r"[-*_=\s§]{3,}|§", stripped):
            joins = False
        elif title or (
            bulleted and not bullet and stripped.endswith((":", "：")) and not line[0].isspace()
        ):
            heading, joins = next(filter(None, title.groups())) if title else stripped, False
            heading = "" if not title and len(heading.split()) > 4 else heading.strip(" :：*")
        elif bullet:
            found.append(ListLine(number, bullet[2].strip(), (heading,) if heading else ()))
            bullets.add(number)
            joins = True
        elif joins and found and _goes_on(found[-1].text, line, bulleted):
            last = found[-1]
            found[-1] = ListLine(last.number, f"{last.text}\n{stripped}", last.headings)
        else:
            found.append(ListLine(number, stripped, (heading,) if heading else ()))
            joins = True
    if bulleted:
        found = _inside(found, bullets)
    return [_dated(line) for line in found if line.text]


def _inside(found: list[ListLine], bullets: set[int]) -> list[ListLine]:
    """The lines, those before the first and after the last bullet marked as outside."""
    first, last = min(bullets), max(bullets)
    return [replace(line, outside=not first <= line.number <= last) for line in found]


def _goes_on(before: str, line: str, bulleted: bool) -> bool:
    """Whether a line continues the one before: indented below a bullet, or a wrapped sentence. Where memories without bullets
    begin in small letters, each line is one."""
    if bulleted and line[:1].isspace():
        return True
    wraps = line[:1].islower() and (bulleted or not before[:1].islower())
    return wraps and not before.rstrip().endswith((".", "!", "?", "…", "。", ":", ";"))


def _dated(line: ListLine) -> ListLine:
    found = _DATED.match(line.text)
    date = (found[1] or found[2] or "").strip() if found else ""
    if not found or not (moment(date) or _NO_DATE.fullmatch(date)):
        return line
    return replace(line, text=found[3].strip(), date=date)


def is_list(text: str) -> bool:
    """Whether most lines of a text are bullets."""
    lines = [line for line in text.split("\n") if line.strip() and not _HEADING.match(line.strip())]
    return len(lines) >= 2 and sum(bool(_BULLET.match(line)) for line in lines) >= 0.7 * len(lines)


def noted_lines(name: str, text: str, **values: Any) -> Iterator[Read]:
    """Notes of the memories of a plain list; what it is headed by becomes their tags."""
    seen: set[str] = set()
    tags = values.pop("tags", ())
    for line in lines_of(text):
        place = f"{name}, line {line.number}"
        content = text_of(line.text)
        key = content_key("memory", " ".join(content.casefold().split()))
        if line.outside:
            yield Skipped(place, "This line stands before or after the list.")
            continue
        if key in seen:
            yield Skipped(place, "The same memory stands above.")
            continue
        seen.add(key)
        given = values | {"created_at": moment(line.date) or values.get("created_at")}
        yield from notes_of(place, key, content, tags=tags_of(list(tags), list(line.headings)), **given)


def noted_paragraphs(name: str, text: str, **values: Any) -> Iterator[Read]:
    """Notes of prose in Markdown, a paragraph or a bullet each, with the heading that it stands under as a tag.

    A paragraph that only announces bullets (`Preferences:`) becomes their heading.
    """
    tags = list(values.pop("tags", ()))
    heading, number = "", 1
    seen: set[str] = set()
    for block in re.split(r"\n[ \t]*\n", text):
        place, number = f"{name}, line {number}", number + block.count("\n") + 2
        title = _HEADING.match(block.strip().split("\n")[0].strip())
        if title:
            heading = next(filter(None, title.groups())).strip(" :")
            block = block.strip().partition("\n")[2]
        listed = lines_of(block) if is_list(block) else None
        for content in [line.text for line in listed] if listed else [block]:
            body = text_of(content)
            key = content_key("memory", " ".join(body.casefold().split()))
            if body and key not in seen and not re.fullmatch(r"[-*_=\s]+", body):
                seen.add(key)
                yield from notes_of(place, key, body, tags=tags_of([*tags, heading]), **values)
