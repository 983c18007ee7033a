"""What a purge looks for, and how what it finds is taken out of a value."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from apps.core.purging.fragments import Fragments, merged_spans
from apps.core.text import split_sentences

MARKER = "[removed by the user]"
"""What stands in the place of a text that was purged."""

_TEXT_KEYS = frozenset({"text", "content", "excerpt", "summary", "title", "tags", "category"})
"""In an object that names the purged row, these hold words of it, quoted or not."""
_NAMES = frozenset({"id", "name", "note_id", "role", "tool_use_id", "type"})
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""What something goes by in an object: a tool's name cannot be rewritten without breaking what refers to it."""
_PIECES = '{"texts"'
"""How a text begins that is kept in pieces, as it was streamed: a word may go from one into the next."""
_BARE_ID = re.compile(r"(?:note-)?[0-9a-f-]{32,36}", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One purge of one user's row or rows.

    `ids` are the rows themselves, `related` further ids that stand for them (a tool call that returned one). `own` are
    the fragments of all texts they ever had, `exclusive` those of them that no other note, file or setting has.
    `messages` are the messages to be redacted whole.
    """

    user_id: UUID
    source: str
    ids: frozenset[UUID]
    own: Fragments
    exclusive: Fragments
    messages: frozenset[UUID] = frozenset()
    related: frozenset[str] = frozenset()
    _names: frozenset[str] = field(default=frozenset(), repr=False)

    def __post_init__(self) -> None:
        forms = {form for key in self.ids for form in (str(key), key.hex)}
        object.__setattr__(self, "_names", frozenset(forms | self.related))

    def with_related(self, related: Iterable[str]) -> "Trace":
        return replace(self, related=self.related | frozenset(related), _names=frozenset())

    def names(self, text: str) -> bool:
        """Whether a text holds an id of what is purged, or one that stands for it."""
        return any(name in text for name in self._names)

    def names_row(self, text: str) -> bool:
        """Whether a text holds the id of a purged row itself."""
        return any(str(key) in text or key.hex in text for key in self.ids)

    def concerns(self, text: str) -> bool:
        """Whether a stored text has to be looked into: it quotes what is purged or names it."""
        return self.names(text) or found_in(self.exclusive, text)

    def says_same(self, text: str) -> bool:
        """Whether a text of the user's own quotes what is purged: by a run of its words, or by a distinctive word that
        no other note has."""
        return found_in(Fragments(self.own.runs, self.exclusive.stems), text)

    def leaks(self, text: str) -> bool:
        """Whether a stored text still quotes what is purged, or holds a row of it by its id together with its words."""
        return found_in(self.exclusive, text) or (self.names_row(text) and found_in(self.own, text))


def found_in(fragments: Fragments, text: str) -> bool:
    """Whether a stored text, plain or JSON, holds any of the fragments."""
    if not text.startswith(_PIECES) and not fragments.may_match(text):
        return False
    return any(fragments.holds(leaf) for leaf in leaves(text))


def leaves(text: str) -> Iterable[str]:
    """The strings in a text: those of its JSON where it is some, else the text itself."""
    value = _json_of(text)
    if value is None:
        yield text
        return
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield from leaves(item) if _json_of(item) is not None else [item]
        elif isinstance(item, dict):
            stack.extend(item.values())
            stack.extend(item.keys())
        elif isinstance(item, list):
            stack.extend(item)
            if item and all(isinstance(part, str) for part in item):
                yield "".join(item)


def redact_text(text: str, trace: Trace, *, strict: bool = False) -> str:
    """The text without what is purged. In JSON the strings are cleaned and the shape stays.

    A quotation is replaced by MARKER, and so is a whole sentence with a distinctive word in it. `strict` takes all
    fragments, also those that other texts share; so does an object or a line that names what is purged.
    """
    value = _json_of(text)
    if value is not None:
        cleaned = redact_value(value, trace, strict=strict)
        return (
            text
            if cleaned == value
            else json.dumps(cleaned, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        )
    return "".join(_line(line, trace, strict) for line in text.splitlines(keepends=True))


def redact_value(value: Any, trace: Trace, *, strict: bool = False) -> Any:
    """A JSON value without what is purged; ids, numbers and the shape stay."""
    if isinstance(value, str):
        return redact_text(value, trace, strict=strict)
    if isinstance(value, list):
        return [redact_value(item, trace, strict=strict) for item in value]
    if isinstance(value, dict):
        return _object(value, trace, strict)
    return value


def _object(value: dict[str, Any], trace: Trace, strict: bool) -> dict[str, Any]:
    scalars = [item for item in value.values() if isinstance(item, str) and len(item) <= 80]
    direct = any(trace.names_row(item) for item in scalars)
    strict = strict or any(trace.names(item) for item in scalars)
    cleaned = {}
    for key, item in value.items():
        if _is_name(key, item):
            cleaned[key] = item
            continue
        told = (direct and key in _TEXT_KEYS) or (strict and key == "summary")
        if told and item and not _is_json(item):
            cleaned[key] = [] if isinstance(item, list) else MARKER
        else:
            cleaned[key] = redact_value(item, trace, strict=strict)
    return cleaned


def _is_name(key: str, value: Any) -> bool:
    """Whether a value is what something goes by; a note's id is one only where it can be an id at all."""
    shape = _BARE_ID if key == "note_id" else _NAME
    return key in _NAMES and isinstance(value, str) and shape.fullmatch(value) is not None


def _is_json(item: Any) -> bool:
    return (
        isinstance(item, dict)
        or (isinstance(item, list) and any(not isinstance(part, str) for part in item))
        or (isinstance(item, str) and _json_of(item) is not None)
    )


def _line(line: str, trace: Trace, strict: bool) -> str:
    body = line.rstrip("\r\n")
    end = line[len(body) :]
    if trace.names_row(body):
        return line if _BARE_ID.fullmatch(body.strip()) else f"{MARKER}{end}"
    fragments = trace.own if strict or trace.names(body) else trace.exclusive
    if not fragments.may_match(body):
        return line
    sentences = split_sentences(body)
    spans = list(fragments.quoted(body))
    start = 0
    for sentence in sentences:
        if fragments.named(sentence):
            spans.append((start, start + len(sentence.rstrip())))
        start += len(sentence)
    return _replaced(body, list(merged_spans(spans))) + end


def _replaced(text: str, spans: list[tuple[int, int]]) -> str:
    pieces, place = [], 0
    for start, end in spans:
        pieces += [text[place:start], MARKER]
        place = end
    return "".join([*pieces, text[place:]])


def _json_of(text: str) -> Any:
    """The list or object that a text is the JSON of, else None."""
    if not text or text[0] not in "[{" or text[-1] not in "]}":
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list | dict) else None
