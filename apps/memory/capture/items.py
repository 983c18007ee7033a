"""The items that an extractor hands over, checked one by one: the good ones go on, of the others the reason is kept."""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time, tzinfo
from enum import StrEnum
from typing import Any
from uuid import UUID

from apps.core.errors import IzzyError, NotFound
from apps.core.http.shapes import clean_time
from apps.core.ids import parse_id
from apps.core.text import clean_text
from apps.memory.models import Kind, Tier
from apps.memory.notes.fields import MAX_TAG_CHARS
from apps.memory.occasions.phrases import usable_occasions
from apps.memory.trust import looks_sensitive

MAX_ITEMS = 10
MAX_CHARS = 1000
MAX_TAGS = 8
DEFAULT_IMPORTANCE = 3
DAYS_END = time(23, 59)
"""To the minute, as the page has it: on the last day that was named it still holds."""

_NUMBER = re.compile(r"(?<![\d.])\d{1,4}(?![\d.]*\d)")
"""Which segment is meant: 3, "3", "[3]", "segment 3"; nothing where it is no whole number."""


class Action(StrEnum):
    ADD = "add"
    UPDATE = "update"
    SUPERSEDE = "supersede"
    SKIP = "skip"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing to remember. `evidence` are places in the window's segments, from 0; empty: the model named none."""

    action: Action
    content: str
    kind: str = str(Kind.GENERAL)
    importance: int = DEFAULT_IMPORTANCE
    tags: tuple[str, ...] = ()
    occasions: tuple[str, ...] = ()
    tier: str = str(Tier.LONG_TERM)
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    sensitive: bool = False
    standing: bool = False
    target: UUID | None = None
    evidence: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Dropped:
    """An item that was not taken: a code, and a detail without any of its words."""

    code: str
    detail: str = ""

    def to_json(self) -> dict[str, str]:
        return {"code": self.code, "detail": self.detail[:120]}


def checked_items(
    given: Sequence[Any], *, segments: int, notes: Collection[UUID], zone: tzinfo
) -> tuple[list[Item], list[Dropped]]:
    """The usable items and why others are not. `notes` are the ids that the model was shown, days are those of `zone`.

    Wrong values of lesser fields fall back to their defaults; an item without content, or that changes a note which
    it was not shown, is dropped.
    """
    items: list[Item] = []
    dropped: list[Dropped] = []
    for place, value in enumerate(given):
        if place >= MAX_ITEMS:
            dropped.append(Dropped("too_many", f"{len(given) - MAX_ITEMS} items beyond {MAX_ITEMS}"))
            break
        try:
            items.append(_item(value, segments, notes, zone))
        except IzzyError as error:
            dropped.append(
                Dropped(error.code, f"item {place + 1}: {error.extra.get('field', '')}".rstrip(": "))
            )
    return items, dropped


def _item(value: Any, segments: int, notes: Collection[UUID], zone: tzinfo) -> Item:
    if not isinstance(value, dict):
        raise NotFound(code="not_an_item")
    action = _choice(value.get("action"), Action, Action.ADD)
    target = _target(value.get("target"), notes)
    content = value.get("content")
    if action == Action.SKIP:
        return Item(action=action, content=str(content or "")[:MAX_CHARS], target=target)
    if action in {Action.UPDATE, Action.SUPERSEDE} and target is None:
        raise NotFound(code="unknown_target", field="target")
    valid_from = _time(value.get("valid_from"), zone)
    valid_to = _time(value.get("valid_to"), zone, by_day=DAYS_END)
    return Item(
        action=action,
        content=" ".join(clean_text(content, field="content", max_chars=MAX_CHARS).split()),
        kind=str(_choice(value.get("kind"), Kind, Kind.GENERAL)),
        importance=_importance(value.get("importance")),
        tags=_tags(value.get("tags")),
        occasions=tuple(usable_occasions(value.get("occasions"))),
        tier=str(_choice(value.get("tier"), Tier, Tier.LONG_TERM)),
        valid_from=valid_from,
        valid_to=valid_to if valid_to and (valid_from is None or valid_to > valid_from) else None,
        sensitive=_flag(value.get("sensitive")) or looks_sensitive(str(content)),
        standing=_flag(value.get("standing")),
        target=target,
        evidence=_evidence(value.get("evidence"), segments),
    )


def _choice(value: object, kinds: Any, default: Any) -> Any:
    name = (
        str(value).strip().lower().replace("-", "_").replace(" ", "_") if isinstance(value, str) else ""
    )
    return next((kind for kind in kinds if str(kind) == name), default)


def _target(value: object, notes: Collection[UUID]) -> UUID | None:
    """The note that is meant, None for one the model was not shown."""
    try:
        found = parse_id(value.strip().strip("[]<>()`'\" ") if isinstance(value, str) else value)
    except NotFound:
        return None
    return found if found in notes else None


def _importance(value: Any) -> int:
    try:
        return min(max(round(float(value)), 1), 5)
    except (TypeError, ValueError, OverflowError):
        return DEFAULT_IMPORTANCE


def _tags(value: object) -> tuple[str, ...]:
    given = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    texts = [" ".join(tag.lower().split()) for tag in given if isinstance(tag, str)]
    usable = [tag for tag in texts if 0 < len(tag) <= MAX_TAG_CHARS and tag.isprintable()]
    return tuple(dict.fromkeys(usable))[:MAX_TAGS]


def _time(value: object, zone: tzinfo, by_day: time = time.min) -> datetime | None:
    """A time of the zone where it names none; a bare day stands for its moment `by_day`."""
    if not isinstance(value, str):
        return None
    moment: object = value
    with suppress(ValueError):
        moment = datetime.combine(date.fromisoformat(value.strip()), by_day)
    try:
        return clean_time(moment, field="valid", zone=zone)
    except IzzyError:
        return None


def _flag(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() in {"true", "yes", "1"})


def _evidence(value: object, segments: int) -> tuple[int, ...]:
    """Places from 0 of the segments cited; what names none is left out."""
    given = value if isinstance(value, list) else [value]
    numbers = []
    for entry in given:
        found = None if isinstance(entry, bool) else _NUMBER.search(str(entry))
        if found and 1 <= int(found[0]) <= segments:
            numbers.append(int(found[0]) - 1)
    return tuple(dict.fromkeys(numbers))


COUNTS = ("added", "merged", "superseded", "pending", "skipped", "injected_again")


@dataclass(slots=True)
class CaptureCounts:
    """Items by what came of them: `pending` wait for the user's review, `injected_again` are Izzy's own notes."""

    added: int = 0
    merged: int = 0
    superseded: int = 0
    pending: int = 0
    skipped: int = 0
    injected_again: int = 0
    dropped: list[Dropped] = field(default_factory=list)
    memory_ids: list[UUID] = field(default_factory=list)

    def skip(self, code: str) -> None:
        """An item that brings nothing new, and why."""
        self.skipped += 1
        self.dropped.append(Dropped(code))

    def add(self, other: "CaptureCounts") -> None:
        """Adds the figures of another."""
        for name in (*COUNTS, "dropped", "memory_ids"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
