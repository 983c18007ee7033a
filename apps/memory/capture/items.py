"""The items that an extractor hands over, checked one by one: the good ones go on, of the others the reason is kept; and the candidates
that they are compared with: near notes, notes that ended, and what Izzy itself showed."""

import re
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from enum import StrEnum
from typing import Any, TypeAlias
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.core.errors import IzzyError, NotFound
from apps.core.http.shapes import clean_time
from apps.core.ids import parse_id
from apps.core.text import clean_text
from apps.memory.models import Kind, Memory, Status, Tier, Trust
from apps.memory.notes.fields import MAX_TAG_CHARS
from apps.memory.notes.selectors import memories_by_id
from apps.memory.occasions.phrases import usable_occasions
from apps.memory.similarity import (
    CANDIDATES,
    NOTES,
    Content,
    adds_nothing,
    content_of,
    same_content,
    says_the_same,
)
from apps.memory.trust import least_trust, looks_sensitive
from apps.search.selectors import search, similar_each

from .leases import LeasedWindow

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


SHOWN_NOTES = 12
SEGMENTS_ASKED = 6
QUERY_CHARS = 2000
PAST_NOTES = 300
"""The newest notes that are not active any more, or not yet, which an item is compared with."""
PAST_DAYS = timedelta(days=365)
Alike: TypeAlias = Sequence[tuple[UUID, float]]  # active notes with their calibrated similarity


def notes_for(window: LeasedWindow) -> list[Memory]:
    """The active notes that a window is most likely about, those that its conversation was shown first.

    However far away the nearest are: "we have a red Golf now" is what ends "drives a blue Skoda".
    """
    user_id = window.user_id
    fresh = [segment for segment in window.segments if not segment.seen]
    own = sorted(fresh, key=lambda segment: segment.trust != Trust.USER)
    found: list[tuple[UUID, float]] = []
    texts = [segment.text for segment in own[:SEGMENTS_ASKED]]
    for near in similar_each(user_id, texts, top_k=CANDIDATES, scope=NOTES):
        found += near
    query = "\n".join(segment.text for segment in own)[:QUERY_CHARS]
    found += [
        (hit.source_id, hit.score) for hit in search(user_id, query, top_k=SHOWN_NOTES, scope=NOTES)
    ]
    found += [(parse_id(key), 1.0) for key, _ in window.shown if key]
    scores: dict[UUID, float] = {}
    for note_id, score in found:
        scores[note_id] = max(scores.get(note_id, 0.0), score)
    best = sorted(scores, key=lambda note: -scores[note])
    notes = memories_by_id(user_id, best)
    active = [notes[key] for key in best if key in notes and notes[key].status == Status.ACTIVE]
    return active[:SHOWN_NOTES]


@dataclass(slots=True)
class Known:
    """Holds what the items of one window are compared with beside the notes near to each."""

    user_id: UUID
    past: list[
        tuple[Memory, Content]
    ]  # notes that are not active any more, or not yet: search does not find them
    shown: list[Content]  # what Izzy put beside the conversation, as shown and as those notes read now
    written: dict[int, Memory] = field(
        default_factory=dict
    )  # notes that items before gave rise to, by place

    @classmethod
    def of(cls, window: LeasedWindow) -> "Known":
        notes = Memory.objects.with_deleted(window.user_id)
        recent = Q(updated_at__gte=timezone.now() - PAST_DAYS) | Q(status=Status.PENDING)
        past = notes.exclude(status=Status.ACTIVE).filter(recent).order_by("-updated_at")[:PAST_NOTES]
        ids = [key for key, _ in window.shown if key]
        texts = [
            *(text for _, text in window.shown),
            *notes.filter(pk__in=ids).values_list("content", flat=True),
        ]
        return cls(
            window.user_id,
            [(note, content_of(note.content)) for note in past],
            [content_of(text) for text in dict.fromkeys(texts)],
        )

    def was_shown(self, item: Item) -> bool:
        """Whether Izzy itself put these words beside the conversation: hearing them again is no news."""
        words = content_of(item.content)
        return any(same_content(words, text) for text in self.shown)

    def same_as(
        self, item: Item, near: Alike, among: Sequence[float], *, target: Memory | None, trust: Trust
    ) -> Memory | None:
        """The active note that says the same already, or one that an item before gave rise to."""
        for place, value in enumerate(among):
            note = self.written.get(place)
            if note is None or note == target or not says_the_same(item.content, note.content, value):
                continue
            kept = self._living().filter(pk=note.pk).first()
            if kept and not (kept.status == Status.PENDING and _outranks(trust, kept.trust)):
                return kept
        active = self._living().filter(pk__in=[key for key, _ in near], status=Status.ACTIVE)
        by_id = {note.pk: note for note in active}
        for key, value in near:
            found = by_id.get(key)
            if found is None:
                continue
            # Of the note that an item means to change, only its words can say that there is nothing to change.
            is_target = found == target
            if (
                adds_nothing(item.content, found.content)
                if is_target
                else says_the_same(item.content, found.content, value)
            ):
                return found
        return None

    def past_reason(self, item: Item, trust: Trust, said_at: datetime) -> str | None:
        """Why an item that says what a note said that is not active must not come back; None where it may.

        A note that waits is not proposed again, unless the words are trusted more by now. What was superseded, put
        away or deleted comes back only when it is said anew afterwards by the user, and a superseded text only where
        the model says what it replaces.
        """
        words = content_of(item.content)
        for note, content in self.past:
            if not same_content(words, content):
                continue
            ended = note.deleted_at or note.valid_to or note.updated_at
            if note.status == Status.PENDING:
                if not _outranks(trust, note.trust):
                    return "waits_for_review"
            elif said_at <= ended or trust == Trust.UNTRUSTED:
                return f"was_{note.status}"
            elif note.status == Status.SUPERSEDED and item.action == Action.ADD:
                successor = self._living().filter(supersedes=note, status=Status.ACTIVE)
                if successor.exists():
                    return "was_superseded"
        return None

    def _living(self) -> QuerySet[Memory]:
        return Memory.objects.owned_by(self.user_id).filter(status__in=[Status.ACTIVE, Status.PENDING])


def _outranks(trust: Trust, other: Trust | str) -> bool:
    """Whether words are trusted more than others."""
    return trust != Trust(other) and least_trust(trust, other) == Trust(other)
