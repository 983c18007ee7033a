"""Lists of notes: which, in what order."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import F, Q, QuerySet

from apps.core.errors import InvalidInput
from apps.core.shapes import clean_time
from apps.core.text import clean_text
from apps.memory.fields import clean_category, clean_tag
from apps.memory.history.spans import SEARCHABLE
from apps.memory.models import Kind, Memory, Origin, Status, Tier
from apps.memory.models.folding import fold

from .notes import with_present_priority

MAX_QUERY_CHARS = 1000
MAX_QUERY_WORDS = 20

ORDERINGS = {
    "created_at": "created_at",
    "updated_at": "updated_at",
    "importance": "importance",
    "priority": "priority_now",
    "last_accessed": "last_accessed",
    "access_count": "access_count",
}
"""Public name of an order -> what it sorts by; a leading minus turns it round."""

_CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "tier": ("tier", tuple(Tier.values)),
    "kind": ("kind", tuple(Kind.values)),
    "status": ("status", tuple(Status.values)),
    "source": ("origin", tuple(Origin.values)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteFilter:
    """Filter of a list. An empty value does not limit; without a status all but deleted notes are shown.

    `q` are words that all must occur in the text or the tags; `source` is an `Origin`. `status` `deleted`
    shows what can still be restored. `as_of` shows the notes that held at that time instead, whatever has become of
    them but deletion and archiving; what they said then is `history.texts_at`.
    """

    q: str = ""
    tier: str = ""
    kind: str = ""
    tag: str = ""
    category: str = ""
    status: str = ""
    source: str = ""
    as_of: datetime | str = ""
    ordering: str = "-created_at"


def memories_list(user_id: UUID, wanted: NoteFilter) -> QuerySet[Memory]:
    """The notes that fit, each with `present`. Raises InvalidInput for a value that no note can have."""
    notes = _with_status(user_id, wanted)
    for name, (column, allowed) in _CHOICES.items():
        value = getattr(wanted, name)
        if value and value not in allowed:
            raise InvalidInput(f"{name} must be one of {', '.join(allowed)}.", field=name)
        if value:
            notes = notes.filter(**{column: value})
    if wanted.category:
        notes = notes.filter(category=clean_category(wanted.category))
    if wanted.tag:
        notes = notes.filter(has_tag(clean_tag(wanted.tag)))
    for condition in _words(wanted.q):
        notes = notes.filter(condition)
    return _ordered(with_present_priority(user_id, notes), wanted.ordering)


def _with_status(user_id: UUID, wanted: NoteFilter) -> QuerySet[Memory]:
    if wanted.as_of:
        return _at(user_id, clean_time(wanted.as_of, field="as_of"))
    if wanted.status == Status.DELETED:
        return Memory.objects.restorable(user_id)
    return Memory.objects.for_user(user_id)


def _at(user_id: UUID, moment: datetime) -> QuerySet[Memory]:
    """The notes that held at a moment: from their `valid_from`, or else from when they were made."""
    begun = Q(valid_from__lte=moment) | Q(valid_from=None, created_at__lte=moment)
    held = Q(valid_to=None) | Q(valid_to__gt=moment)
    return Memory.objects.for_user(user_id).filter(begun, held, status__in=SEARCHABLE)


def has_tag(tag: str) -> Q:
    """Notes with a tag, however it is written."""
    return Q(folded_tags__contains=f"\n{fold(tag)}\n")


def _words(query: str) -> list[Q]:
    """Notes with a word, or part of one, in their text or tags, however it is written; for each word."""
    text = clean_text(query, field="q", max_chars=MAX_QUERY_CHARS, allow_empty=True)
    words = map(fold, text.split()[:MAX_QUERY_WORDS])
    return [Q(folded_content__contains=word) | Q(folded_tags__contains=word) for word in words]


def _ordered(notes: QuerySet[Memory], ordering: str) -> QuerySet[Memory]:
    name = ordering.removeprefix("-")
    if name not in ORDERINGS:
        raise InvalidInput(f"ordering must be one of {', '.join(ORDERINGS)}.", field="ordering")
    column = F(ORDERINGS[name])
    order: Any = column.desc(nulls_last=True) if ordering.startswith("-") else column.asc(nulls_last=True)
    return notes.order_by(order, "-pk")
