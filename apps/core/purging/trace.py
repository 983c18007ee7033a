"""A purge: what it looks for, how that is recognised in texts and taken out of them, looking through all places, and what an
app adds."""

import html
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial
from itertools import chain
from operator import attrgetter
from typing import Any, TypeAlias
from urllib.parse import unquote
from uuid import UUID

from django.apps import apps
from django.db import models, transaction
from django.db.models.functions import Cast
from django.utils.text import capfirst

from apps.core.purging.places import GOES_BY, OWNERS, PLACES, RedactionTarget, Rule
from apps.core.registries import Registry
from apps.core.text import split_sentences, truncated

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


class Fragments(frozenset[str | tuple[str, ...]]):
    """Runs of words (tuples), and single words that tell a text by themselves (strings)."""

    @classmethod
    def of(cls, text: str, function_words: Collection[str]) -> "Fragments":
        """The fragments of a text: a shorter one is a run as a whole, what has but one word beside function words ("in the
        shed") is none, and neither they nor years tell a text by themselves."""
        words = _WORD.findall(_folded(text))
        size = 2 * RUN if re.search(f"[{_DENSE}]", text) else RUN
        runs = {run for run in _runs(words, size) if len(set(run).difference(function_words)) > 1}
        of_its_own = {
            word
            for word in words
            if len(word) >= MIN_WORD
            and (is_code(word) or not (_YEAR.fullmatch(word) or word in function_words))
        }
        return cls(of_its_own | (runs if len(words) >= size else {tuple(words)} - {()}))

    def without(self, shared: Set[str | tuple[str, ...]]) -> "Fragments":
        """Those that no other text has, and codes whoever else has them."""
        return Fragments(
            self - {each for each in shared if isinstance(each, tuple) or not is_code(each)}
        )

    @cached_property
    def _needles(self) -> set[str]:
        """Words of which every text that holds a fragment has one; where there are many, what stands in any text."""
        runs = [each for each in self if isinstance(each, tuple) and self.isdisjoint(each)]
        needles = {each for each in self if isinstance(each, str)}.union(
            max(run, key=len) for run in runs
        )
        return needles if len(needles) <= MAX_NEEDLES else {""}

    def found_in(self, text: str) -> Set[str | tuple[str, ...]]:
        """Those that a text holds."""
        words = _WORD.findall(_folded(text))
        sizes = {len(each) for each in self if isinstance(each, tuple)}
        return self.intersection(chain(words, *(_runs(words, size) for size in sizes)))

    def match(self, text: str) -> bool:
        """Whether a stored text, plain or JSON, holds any."""
        if not text.startswith(
            '{"texts"'
        ):  # what was streamed: a word may go from one piece into the next
            folded = _folded(text)
            if not any(needle in folded for needle in self._needles):
                return False
        return any(map(self.found_in, leaves(text)))


def _folded(text: str) -> str:
    """A text with JSON, HTML and URL escapes undone, case folded and in one form (NFKC)."""
    for _ in range(3):  # JSON in JSON, and an address in it
        text = html.unescape(
            unquote(_JSON_ESCAPE.sub(lambda found: str(json.loads(f'"{found.group()}"')), text))
        )
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def _runs(words: list[str], size: int) -> Iterator[tuple[str, ...]]:
    return (tuple(words[start : start + size]) for start in range(len(words) - size + 1))


def is_code(word: str) -> bool:
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

    def concerns(self, text: str, *, again: bool) -> bool:
        """Whether a stored text has to be looked into: it quotes what is purged or names it; `again`, once it was cleaned: it still
        quotes that, or names a row of it together with its words."""
        named = self.names_row(text) and self.own.match(text) if again else self.names(text)
        return named or self.exclusive.match(text)

    @cached_property
    def same(self) -> Fragments:
        """By what a text of the user's own says the same: also by runs that other notes have."""
        return Fragments(self.exclusive.union(each for each in self.own if isinstance(each, tuple)))


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
    if _BARE_ID.fullmatch(text.strip()) or not (trace.names_row(text) or fragments.match(text)):
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


def model_of(column: str) -> type[models.Model]:
    return apps.get_model(column.rpartition(".")[0])


def rows_of(model: type[models.Model], user_id: UUID) -> models.QuerySet[Any]:
    """The user's rows of a table."""
    return model._base_manager.filter(**{OWNERS.get(model._meta.label_lower, "user_id"): user_id})


def texts(
    place: RedactionTarget, user_id: UUID, *, without: Collection[UUID] = ()
) -> Iterator[tuple[str, Any, str]]:
    """(column, primary key, text) of the user's rows in a place but those that belong to the notes or files `without`."""
    tables: dict[type[models.Model], list[str]] = {}
    for column in place.columns:
        tables.setdefault(model_of(column), []).append(column)
    for model, columns in tables.items():
        casts = {
            f"text_{at}": Cast(name.rpartition(".")[2], models.TextField())
            for at, name in enumerate(columns)
        }
        rows = rows_of(model, user_id).annotate(**casts).order_by().values_list("pk", *casts)
        others = rows.exclude(**{f"{place.subject}__in": without}) if without else rows
        for pk, *values in others.iterator(chunk_size=500):
            yield from ((name, pk, text) for name, text in zip(columns, values, strict=True) if text)


EXCERPT = 300
Hits: TypeAlias = Mapping[str, Sequence[Any]]
"""By column (`chat.message.text`) the primary keys of the rows in which something was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """A message that says what a note says."""

    id: UUID
    conversation_id: UUID
    role: str
    title: str
    text: str
    created_at: datetime
    recorded: bool = False  # the note itself names it as its source

    @property
    def excerpt(self) -> str:
        """Its beginning, for a list to choose from."""
        return truncated(self.text, EXCERPT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePart:
    """One app's part in a purge."""

    busy: Callable[[Trace, Hits], bool] | None = None  # true where somebody would write it again
    clear: Callable[[Trace, Hits], object] | None = None  # idempotent, in short transactions
    counts: Callable[[Trace], Mapping[str, int]] | None = None  # by place, what no column shows
    messages: Callable[[UUID, Collection[Any]], Sequence[SourceText]] | None = None  # oldest first
    before_disk: Callable[[], object] | None = None  # before the disk is cleaned, in short transactions
    in_use: Callable[[], bool] | None = None  # true where a long write would hold somebody up right now


purge_parts: Registry[PurgePart] = Registry()
"""name of an app -> what it does in a purge beyond PLACES."""


@transaction.atomic
def rewrite(rows: models.QuerySet[Any], change: Callable[[Any], Mapping[str, Any]]) -> None:
    """Gives each row the values that `change` has for it, where they differ."""
    for row in rows.select_for_update():
        values = {name: value for name, value in change(row).items() if getattr(row, name) != value}
        if values:
            rows.model._base_manager.filter(pk=row.pk).update(**values)


def find(trace: Trace, rules: Collection[Rule] = tuple(Rule)) -> tuple[Trace, dict[str, list[Any]]]:
    """The trace with what is its own alone and the ids that stand for it; and `look` in places of these rules."""
    shared: set[str | tuple[str, ...]] = set()
    for place in (each for each in PLACES if each.rule == Rule.KEEP):
        for _, _, text in texts(place, trace.user_id, without=trace.ids if place.subject else ()):
            if trace.own.match(text):
                shared |= trace.own.found_in(" ".join(leaves(text)))
    related = set(trace.related)
    for table, names in GOES_BY.items():
        place = next(each for each in PLACES if each.columns and each.columns[0].startswith(f"{table}."))
        naming = {pk for _, pk, text in texts(place, trace.user_id) if trace.names_row(text)}
        known_by = (
            rows_of(apps.get_model(table), trace.user_id).filter(pk__in=naming).values_list(*names)
        )
        related.update(str(value) for value in chain.from_iterable(known_by) if value)
    trace = replace(trace, exclusive=trace.own.without(shared), related=frozenset(related))
    return trace, look(trace, rules)


def look(
    trace: Trace, rules: Collection[Rule] = tuple(Rule), *, again: bool = False
) -> dict[str, list[Any]]:
    """By column, the rows that name what is purged or quote it; `again`, those that still quote it."""
    hits: dict[str, list[Any]] = defaultdict(list)
    for place in PLACES:
        if place.rule not in rules:
            continue
        stays = place.rule in {Rule.KEEP, Rule.OFFER}
        for column, pk, text in texts(place, trace.user_id):
            if trace.same.match(text) if stays else trace.concerns(text, again=again):
                hits[column].append(pk)
    return dict(hits)


def clear(trace: Trace, hits: Hits) -> None:
    """Clean what was found. Idempotent, in short transactions."""
    for part in purge_parts.values():
        if part.clear is not None:
            part.clear(trace, hits)
    cleaned = {column for place in PLACES if place.rule == Rule.CLEAN for column in place.columns}
    for column in hits.keys() & cleaned:
        model, name = model_of(column), column.rpartition(".")[2]
        limit = getattr(model._meta.get_field(name), "max_length", None)
        rewrite(model._base_manager.filter(pk__in=hits[column]), partial(_cleaned, name, limit, trace))


def _cleaned(name: str, limit: int | None, trace: Trace, row: Any) -> dict[str, Any]:
    value = redact(getattr(row, name), trace, about=str(row.pk) in trace.related)
    return {name: value[:limit] if isinstance(value, str) else value}


def counted(trace: Trace) -> dict[str, int]:
    """By place, what no column shows."""
    counts = (part.counts(trace) for part in purge_parts.values() if part.counts is not None)
    return {name: count for each in counts for name, count in each.items()}


def tallies(
    hits: Hits, left: Hits, before: Mapping[str, int], after: Mapping[str, int]
) -> list[dict[str, Any]]:
    """A receipt's lines `{place, label, why, found, removed, left}` by name, in rows: each counts once, in however many of its
    columns something was found."""
    lines = []
    for place in sorted(PLACES, key=attrgetter("name")):
        found_rows, left_rows = (
            {(name.rpartition(".")[0], key) for name in place.columns for key in where.get(name, ())}
            for where in (hits, left)
        )
        remain = max(len(left_rows), after.get(place.name, 0))
        found = max(len(found_rows | left_rows), before.get(place.name, 0), remain)
        if found or place.label:
            why = place.why if remain else ""
            label = place.label or capfirst(str(model_of(place.columns[0])._meta.verbose_name_plural))
            line = {"place": place.name, "label": label, "why": why}
            lines.append({**line, "found": found, "removed": found - remain, "left": remain})
    return lines
