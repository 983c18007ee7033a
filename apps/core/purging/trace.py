"""Holds what a purge looks for, recognises it again in texts, and takes it out of them."""

import html
import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from apps.core.text import split_sentences

MARKER = "[removed by the user]"  # stands in the place of a purged text

RUN = 3  # words in a row that are a quotation, two signs counting as a word in scripts without spaces
MIN_WORD = 4  # signs of a word that tells a text by itself
MAX_NEEDLES = 200

_DENSE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_SIGN = f"(?:(?![{_DENSE}_])\\w)"
_WORD = re.compile(
    f"[{_DENSE}]|{_SIGN}+(?:@{_SIGN}+(?:[.-]{_SIGN}+)*)?"
)  # from the @ on an address is one word
_JSON_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[\"\\/bfnrt])")
_YEAR = re.compile(r"(?:19|20)\d\d")

# In a call that was about the purged row these hold words of it, quoted or not, and in an object that names it.
_CALL_KEYS = frozenset({"summary", "query", "question", "occasions"})
_ROW_KEYS = _CALL_KEYS | {"text", "content", "excerpt", "title", "tags", "category"}
# What something goes by in an object: a tool's name cannot be rewritten without breaking what refers to it.
_BARE_ID = re.compile(r"(?:note-)?[0-9a-f-]{32,36}", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_NAME_KEYS = {**dict.fromkeys(("id", "name", "role", "tool_use_id", "type"), _NAME), "note_id": _BARE_ID}


@dataclass(frozen=True)
class Fragments:
    """Runs of words, and single words that tell a text by themselves."""

    runs: frozenset[tuple[str, ...]] = frozenset()
    words: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, text: str, function_words: Collection[str], is_common: Callable[[str], bool]
    ) -> "Fragments":
        """The fragments of a text: a shorter one is a run as a whole, what has but one word beside function words ("in the
        shed") is none, and neither they nor common words tell a text by themselves."""
        words = _WORD.findall(_folded(text))
        size = 2 * RUN if re.search(f"[{_DENSE}]", text) else RUN
        runs = {run for run in _runs(words, size) if len(set(run).difference(function_words)) > 1}
        return cls(
            frozenset(runs if len(words) >= size else {tuple(words)} - {()}),
            frozenset(
                word
                for word in words
                if len(word) >= MIN_WORD
                and (
                    _is_code(word)
                    or not (_YEAR.fullmatch(word) or word in function_words or is_common(word))
                )
            ),
        )

    def __bool__(self) -> bool:
        return bool(self.runs or self.words)

    def __or__(self, other: "Fragments") -> "Fragments":
        return Fragments(self.runs | other.runs, self.words | other.words)

    def without(self, shared: "Fragments") -> "Fragments":
        """Those that no other text has, and codes whoever else has them."""
        return Fragments(
            self.runs - shared.runs, self.words - {word for word in shared.words if not _is_code(word)}
        )

    @cached_property
    def _needles(self) -> set[str]:
        """Words of which every text that holds a fragment has one; where there are many, what stands in any text."""
        needles = {*self.words, *(max(run, key=len) for run in self.runs if self.words.isdisjoint(run))}
        return needles if len(needles) <= MAX_NEEDLES else {""}

    def may_match(self, text: str) -> bool:
        """False only where a text, plain or JSON, holds none of them."""
        folded = _folded(text)
        return any(needle in folded for needle in self._needles)

    def found_in(self, text: str) -> "Fragments":
        """Those that a text holds."""
        words = _WORD.findall(_folded(text))
        runs = {run for size in {len(run) for run in self.runs} for run in _runs(words, size)}
        return Fragments(self.runs & runs, self.words.intersection(words))

    def match(self, text: str) -> bool:
        """Whether a stored text, plain or JSON, holds any. In what was streamed a word may go from one piece into the next."""
        return (text.startswith('{"texts"') or self.may_match(text)) and any(
            map(self.found_in, leaves(text))
        )


def _folded(text: str) -> str:
    """A text with JSON, HTML and URL escapes undone, case folded and in one form (NFKC)."""
    for _ in range(3):  # JSON in JSON, and an address in it
        text = html.unescape(
            unquote(_JSON_ESCAPE.sub(lambda found: str(json.loads(f'"{found.group()}"')), text))
        )
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def _runs(words: list[str], size: int) -> Iterator[tuple[str, ...]]:
    return (tuple(words[start : start + size]) for start in range(len(words) - size + 1))


def _is_code(word: str) -> bool:
    """Whether a word is a number, a code or an address, and no year: such a word tells a text whoever else has it."""
    return "@" in word or (any(map(str.isdigit, word)) and not _YEAR.fullmatch(word))


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One purge of one user's row or rows."""

    user_id: UUID
    source: str
    ids: frozenset[UUID]
    own: Fragments  # of all texts that the rows ever had
    exclusive: Fragments  # those of them that no other note, file or setting has
    recorded: frozenset[UUID] = frozenset()  # messages that the rows name as their source
    messages: frozenset[UUID] = frozenset()  # to be redacted whole
    related: frozenset[str] = (
        frozenset()
    )  # further ids that stand for the rows: a tool call that returned one

    def names_row(self, text: str) -> bool:
        """Whether a text holds the id of a purged row."""
        return any(str(key) in text or key.hex in text for key in self.ids)

    def names(self, text: str) -> bool:
        """Whether a text holds the id of a purged row, or one that stands for it."""
        return self.names_row(text) or any(name in text for name in self.related)

    def concerns(self, text: str) -> bool:
        """Whether a stored text has to be looked into: it quotes what is purged or names it."""
        return self.names(text) or self.exclusive.match(text)

    @cached_property
    def same(self) -> Fragments:
        """By what a text of the user's own says the same: also by runs that other notes have."""
        return Fragments(self.own.runs, self.exclusive.words)

    def leaks(self, text: str) -> bool:
        """Whether a stored text still quotes what is purged, or names a row of it together with its words."""
        return self.exclusive.match(text) or (self.names_row(text) and self.own.match(text))


def leaves(value: Any) -> Iterator[str]:
    """The strings in a text or a value of JSON, also in JSON within them; of a list of strings also all joined."""
    value = _parsed(value)
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from leaves(part)
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            yield "".join(value)


def redact(value: Any, trace: Trace, *, about: bool = False, whole: bool = False) -> Any:
    """A text, or a value of JSON, without what is purged; ids, numbers and the shape stay.

    A sentence goes that holds a fragment which nothing else has, in what is `about` a purged row any of its fragments. A
    line that names the row goes, and so do the words of an object that does, whatever they say; `whole`: all go.
    """
    if isinstance(value, list):
        return [redact(item, trace, about=about, whole=whole) for item in value]
    if isinstance(value, dict):
        scalars = [item for item in value.values() if isinstance(item, str) and len(item) <= 80]
        about = about or any(map(trace.names, scalars))
        is_row = any(map(trace.names_row, scalars))
        gone = _ROW_KEYS if is_row else _CALL_KEYS if about else frozenset[str]()
        return {
            key: item
            if key in _NAME_KEYS and isinstance(item, str) and _NAME_KEYS[key].fullmatch(item)
            else redact(item, trace, about=about, whole=key in gone)
            for key, item in value.items()
        }
    parsed = _parsed(value)
    if not isinstance(parsed, str):
        cleaned = redact(parsed, trace, about=about, whole=whole) if parsed is not value else value
        if cleaned == parsed:
            return value
        return json.dumps(cleaned, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return MARKER if whole and value else _without(value, trace, trace.own if about else trace.exclusive)


def _without(text: str, trace: Trace, fragments: Fragments) -> str:
    if _BARE_ID.fullmatch(text.strip()) or not (trace.names_row(text) or fragments.may_match(text)):
        return text
    pieces = []
    for line in text.splitlines(keepends=True):
        for piece in [line] if trace.names_row(line) else split_sentences(line):
            is_gone = trace.names_row(piece) or fragments.found_in(piece)
            pieces.append(MARKER + piece[len(piece.rstrip()) :] if is_gone else piece)
    cleaned = "".join(pieces)
    return (
        MARKER if fragments.found_in(cleaned) else cleaned
    )  # a run went from one sentence into the next


def _parsed(value: Any) -> Any:
    """The list or object that a text is the JSON of, else what was given."""
    if not isinstance(value, str) or value[:1] not in {"[", "{"} or value[-1:] not in {"]", "}"}:
        return value
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return parsed if isinstance(parsed, list | dict) else value
