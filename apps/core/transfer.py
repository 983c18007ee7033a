"""Rows taken out of an instance and brought into one: what each app registers for its own, and what came of an import.

A line of an export is one record, a JSON object with a `type`. Groups stand in the file by `rank`, and what a record points to
stands before it. Iterators here hold no cursor open between two records: each step may run on another thread.
"""

import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, TypeVar
from uuid import UUID

from django.conf import settings
from django.db import models
from pydantic import ConfigDict

from apps.core.errors import InvalidInput, IzzyError
from apps.core.http.shapes import DATE_TIME, Checked, OpenInput, clean_time
from apps.core.registries import Registry

M = TypeVar("M", bound=models.Model)
Row = Mapping[str, Any]

PAGE = 200
MAX_PLACES = 20
MAX_WRONG = 200
KNOWN = "It is here already."
CHANGED = "It is here already and says something else; yours was kept."
DELETED = "It was deleted here, and stays so until you restore it."
GONE = "What it belongs to is not here."
OWN_ONLY = "Only your own export brings it."


@dataclass(frozen=True, slots=True)
class Entry:
    """A record of a file: an object of JSON, or what a reader gave. `place` says where it stands, `line` is its number."""

    kind: str
    value: Any
    place: str
    line: int | None = None


@dataclass(slots=True)
class Report:
    """The outcome for records, by kind; reasons keep MAX_PLACES places each, and MAX_WRONG wrong records are listed."""

    kinds: dict[str, dict[str, int]] = field(default_factory=dict)
    skipped: dict[tuple[str, str], tuple[int, list[str]]] = field(default_factory=dict)
    wrong: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # sentences about the file as a whole

    def count(self, kind: str, outcome: str, number: int = 1) -> None:
        """`outcome` is taken, merged, skipped or wrong."""
        kind = kind.removeprefix("foreign_")
        counts = self.kinds.setdefault(kind, dict.fromkeys(("taken", "merged", "skipped", "wrong"), 0))
        counts[outcome] += number

    def take(self, kind: str, number: int = 1) -> None:
        self.count(kind, "taken", number)

    def merge(self, kind: str, number: int = 1) -> None:
        """It went into what was there before."""
        self.count(kind, "merged", number)

    def skip(self, entry: Entry, reason: str, number: int = 1) -> None:
        self.count(entry.kind, "skipped", number)
        key = (entry.kind.removeprefix("foreign_"), reason)
        count, places = self.skipped.setdefault(key, (0, []))
        if len(places) < MAX_PLACES:
            places.append(entry.place)
        self.skipped[key] = (count + number, places)

    def refuse(self, entry: Entry, reason: str) -> None:
        """It is wrong; the sentence says why."""
        self.count(entry.kind or "record", "wrong")
        if len(self.wrong) < MAX_WRONG:
            self.wrong.append({"line": entry.line, "place": entry.place, "message": reason})

    def add(self, other: "Report") -> None:
        for kind, counts in other.kinds.items():
            for outcome, number in counts.items():
                self.count(kind, outcome, number)
        for key, (number, places) in other.skipped.items():
            count, kept = self.skipped.get(key, (0, []))
            self.skipped[key] = (count + number, [*kept, *places][:MAX_PLACES])
        self.wrong = [*self.wrong, *other.wrong][:MAX_WRONG]
        self.notes += other.notes

    def to_json(self) -> dict[str, Any]:
        return {
            "kinds": [{"kind": kind, **counts} for kind, counts in self.kinds.items()],
            "skipped": [
                {"kind": kind, "reason": reason, "count": count, "places": places}
                for (kind, reason), (count, places) in self.skipped.items()
            ],
            "wrong": self.wrong,
            "notes": self.notes,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Report":
        return cls(
            {
                row["kind"]: {name: row[name] for name in row if name != "kind"}
                for row in value.get("kinds", [])
            },
            {
                (row["kind"], row["reason"]): (row["count"], row["places"])
                for row in value.get("skipped", [])
            },
            list(value.get("wrong", [])),
            list(value.get("notes", [])),
        )


@dataclass(slots=True, kw_only=True)
class Taking:
    """An import as those see it who take in its records.

    `own`: it is the user's own export, whose origin and trust count. `accept`: the user vouches for what it says. Else its words
    are others' words. `fresh` are the ids made so far, by which a dry run knows them again; `later` collects what waits for the
    end of the file, JSON-ready, with the kind under `kind`.
    """

    user_id: UUID
    format: str
    own: bool
    accept: bool
    dry_run: bool
    now: datetime
    report: Report = field(default_factory=Report)
    fresh: set[UUID] = field(default_factory=set)
    later: list[dict[str, Any]] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)  # kept from batch to batch, and over a restart

    @property
    def trusted(self) -> bool:
        return self.own or self.accept


Write = Callable[[], None]


def write_nothing() -> None:
    """Stands for a batch of which nothing is new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordGroup:
    """An app's records of one subject: `kinds` may stand among each other (a note, its revisions).

    `plan` looks at some of them in their order, says in the report what becomes of each, and gives what writes them, which is
    called inside a transaction, not at all in a dry run. What takes long belongs before that. `settle` does so for what a
    plan had put off (`Taking.later`) once the file has ended.

    Some of them begin with one of `heads`, all kinds where none is named. With `whole` what belongs to a head comes in one piece
    with it.
    """

    rank: int
    kinds: Collection[str]
    heads: Collection[str] = ()
    whole: bool = False
    plan: Callable[[Taking, Sequence[Entry]], Write]
    rows: Callable[[UUID], Iterator[Row]] | None = None
    documents: Callable[[UUID], Iterator["Document"]] | None = None
    document: Callable[[UUID, UUID], "Document"] | None = None  # one of them; NotFound
    tables: Mapping[str, type[models.Model]] = field(default_factory=dict)  # by kind: rows with an id
    settle: Callable[[Taking, Sequence[dict[str, Any]]], Write] | None = None


record_groups: Registry[RecordGroup] = Registry()
"""name -> the records of an app's own rows; with those of foreign files, whose kinds begin with `foreign_`."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file of the Markdown export; its text comes in parts."""

    path: str
    parts: Iterable[str]
    updated_at: datetime


def front_matter(**values: Any) -> str:
    """The head of a Markdown file, as Obsidian and others read it; what is empty is left out."""
    lines = [
        f"{name}: {value.isoformat() if isinstance(value, datetime) else json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
        if value not in (None, "", [])
    ]
    return "\n".join(["---", *lines, "---", "", ""])


_UNSAFE = re.compile(
    r"""[\x00-\x1f\x7f<>:"/\\|?*\[\]#^`%\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]+"""
)
NAME_CHARS, NAME_BYTES = 60, 200


def file_name(title: str, key: UUID) -> str:
    """A name that every file system and a link of Obsidian take, made unique by the end of the id."""
    first = unicodedata.normalize("NFC", next(iter(title.strip().splitlines()), ""))
    words = " ".join(_UNSAFE.sub(" ", first).split())[:NAME_CHARS]
    words = words.encode()[:NAME_BYTES].decode(errors="ignore").strip(" .")
    return f"{words or 'untitled'} ({key.hex[-8:]})"


def groups() -> list[RecordGroup]:
    """All of them, in the order of an export."""
    return sorted(record_groups.values(), key=lambda group: group.rank)


def group_of(kind: str) -> RecordGroup | None:
    return next((group for group in record_groups.values() if kind in group.kinds), None)


def paged(rows: "models.QuerySet[M]", size: int = PAGE) -> Iterator[M]:
    """The rows by their primary keys, so many with each query."""
    for page in pages(rows, size):
        yield from page


def pages(rows: "models.QuerySet[M]", size: int = PAGE) -> Iterator[list[M]]:
    """The same, page by page."""
    page = list(rows.order_by("pk")[:size])
    while page:
        yield page
        page = list(rows.filter(pk__gt=page[-1].pk).order_by("pk")[:size]) if len(page) == size else []


def other_id(user_id: UUID, key: UUID) -> UUID:
    """The id that a row gets for this user where its own belongs to somebody else: always the same."""
    return derived_id(user_id, "other", str(key))


def derived_id(user_id: UUID, *parts: str) -> UUID:
    """An id (version 8) that follows from these parts, and that nobody without the instance's key can foresee."""
    text = "\x1f".join([str(user_id), *parts]).encode("utf-8", "surrogatepass")
    digest = hmac.new(settings.SECRET_KEY.encode(), b"transfer\x1f" + text, hashlib.sha256).digest()
    value = int.from_bytes(digest[:16], "big")
    return UUID(int=value & ~(0xF << 76) & ~(0b11 << 62) | 0x8 << 76 | 0b10 << 62)


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids that the rows of a file have here, by those that they have in the file, and which of these are there already."""

    here: Mapping[UUID, UUID]
    there: Collection[UUID]

    def __getitem__(self, key: UUID) -> UUID:
        return self.here[key]

    def known(self, key: UUID | None) -> bool:
        """Whether the user has such a row."""
        return key is not None and self.here[key] in self.there

    def of_known(self, key: UUID | None) -> UUID | None:
        """The id here of a row that the user has, else None."""
        return self.here[key] if key is not None and self.known(key) else None


def ids_here(taking: Taking, kind: str, keys: Iterable[UUID | None]) -> Ids:
    """Resolves ids of one kind of record; None stands for no row. One that belongs to somebody else gets another, and is answered
    like a free one."""
    model = next(group.tables[kind] for group in record_groups.values() if kind in group.tables)
    wanted = {key for key in keys if key}
    others = {key: other_id(taking.user_id, key) for key in wanted}
    asked = [*wanted, *others.values()]
    owners: dict[UUID, UUID] = {}
    for start in range(0, len(asked), 500):
        rows = model._base_manager.filter(pk__in=asked[start : start + 500])
        owners.update(rows.values_list("pk", "user_id"))
    there = {key for key, owner in owners.items() if owner == taking.user_id}
    here = {
        key: other if other in there or owners.get(key, taking.user_id) != taking.user_id else key
        for key, other in others.items()
    }
    return Ids(here, there | (taking.fresh & set(here.values())))


S = TypeVar("S", bound=OpenInput)


def shaped(taking: Taking, entries: Iterable[Entry], shape: type[S]) -> list[tuple[Entry, S]]:
    """The entries as their shape has them; what does not fit it is reported as wrong."""
    good = []
    for entry in entries:
        try:
            good.append((entry, shape.read(entry.value)))
        except IzzyError as error:
            taking.report.refuse(entry, error.message)
    return good


def _uuid(value: object, *, field: str) -> UUID:
    if isinstance(value, str) and len(value) <= 45:
        with suppress(ValueError):
            return UUID(value)
    raise InvalidInput(f"{field} must be a UUID.", field=field)


RecordId = Annotated[UUID, Checked(_uuid, {"type": "string", "format": "uuid"})]
"""The id of a row in a record."""


YEARS = range(1900, 2201)
"""Of what an instance does."""


def _time(value: object, *, field: str) -> datetime:
    found = clean_time(value, field=field)
    if found.year not in YEARS:
        raise InvalidInput(f"{field} is out of range.", field=field)
    return found


RecordTime = Annotated[datetime, Checked(_time, DATE_TIME)]


class RecordInput(OpenInput):
    """A record of Izzy's own: as it was written, or by hand; fields that are not known are let pass."""

    model_config = ConfigDict(extra="ignore")

    def columns(self, model: type[models.Model]) -> dict[str, Any]:
        """The values of the model's columns that go by the same names, ids apart."""
        names = {field.attname for field in model._meta.concrete_fields} - {"id"}
        return {name: getattr(self, name) for name in type(self).model_fields if name in names}


def row_of(kind: str, shape: type[RecordInput], row: models.Model, /, **more: Any) -> dict[str, Any]:
    """A row as a record of this shape: each field from `more`, else from the column of its name, or of the id that it points with."""
    held = {**vars(row), **more}
    values = {name: held[name] if name in held else held[f"{name}_id"] for name in shape.model_fields}
    return {"type": kind, **{name: _written(value) for name, value in values.items()}}


def _written(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value
