"""Notes by keywords: the documented score, and what `recall_memory` finds."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import add, or_
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import DateTimeField, F, FloatField, Func, Q, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Greatest, Least, StrIndex
from django.db.models.sql.compiler import SQLCompiler
from django.utils import timezone

from apps.core.errors import InvalidInput
from apps.core.text import clean_text, fold
from apps.memory.models import PRIORITY_FLOOR, Memory, Status
from apps.memory.notes.fields import MAX_TAG_CHARS
from apps.memory.notes.selectors import current_cycle, has_tag, holds_at, present_priority

TAG_WEIGHT = 0.3
CONTENT_WEIGHT = 0.2
RECENCY_WEIGHT = 0.2
RECENCY_HOURS = 24
MAX_KEYWORDS = 20
MAX_KEYWORD_CHARS = 100
MAX_RELEVANT = 100
NEWEST = ("-created_at", "-pk")
MATCHED = Q(tag_hits__gt=0) | Q(content_hits__gt=0)


@dataclass(frozen=True, slots=True)
class RelevantNote:
    """A note with its keyword score, and in how many of the keywords' cases a tag or the content contains them."""

    note: Memory
    score: float
    tag_hits: int
    content_hits: int


def memory_relevant(
    user_id: UUID, keywords: Sequence[str], *, limit: int = 5, now: datetime | None = None
) -> list[RelevantNote]:
    """The user's notes with the highest keyword score, highest first.

    score = present priority + 0.3 per keyword that a tag contains + 0.2 per keyword that the content contains
    + 0.2 × (1 − hours since the last access / 24), not below 0. A keyword counts once, however often it is given,
    and matches inside words, whatever the case. A note never read was last accessed when it was made. Left out are
    notes that are not active or not valid now, and those whose present priority is below 0.05; what matches no
    keyword is not left out.

    One scan over the user's own notes, whatever others have: the cost grows with their number times the keywords.
    Raises InvalidInput for more than 20 keywords.
    """
    scored = _scored(user_id, _clean(keywords), now)
    return _first(scored.filter(priority_now__gte=PRIORITY_FLOOR).order_by("-score", *NEWEST), limit)


def memory_matching(user_id: UUID, keywords: Sequence[str], *, limit: int = 5) -> list[RelevantNote]:
    """As `memory_relevant`, faded notes included, without the notes that match no keyword."""
    return _first(_scored(user_id, _clean(keywords)).filter(MATCHED).order_by("-score", *NEWEST), limit)


def memory_recall(
    user_id: UUID,
    keywords: Sequence[str],
    *,
    tier: str = "",
    tags: Collection[str] = (),
    limit: int = 10,
) -> list[RelevantNote]:
    """The notes that contain a keyword in a tag or the content, highest present priority first, then by score.

    Only those of the tier and with at least one of the tags, where these are given; without keywords all of them. The
    faded, below 0.05, are left out.
    """
    words = _clean(keywords)
    wanted = [
        has_tag(clean_text(tag, field="tags", max_chars=MAX_TAG_CHARS, allow_empty=True)) for tag in tags
    ]
    notes = _scored(user_id, words).filter(reduce(or_, wanted, Q()), priority_now__gte=PRIORITY_FLOOR)
    if tier:
        notes = notes.filter(tier=tier)
    if words:
        notes = notes.filter(MATCHED)
    return _first(notes.order_by("-priority_now", "-score", *NEWEST), limit)


def _clean(keywords: Sequence[str]) -> tuple[str, ...]:
    """The keywords as they are compared, each once."""
    if isinstance(keywords, str) or len(keywords) > MAX_KEYWORDS:
        raise InvalidInput(f"keywords must be a list of at most {MAX_KEYWORDS} texts.", field="keywords")
    cleaned = (
        clean_text(word, field="keywords", max_chars=MAX_KEYWORD_CHARS, allow_empty=True)
        for word in keywords
    )
    return tuple(dict.fromkeys(fold(word) for word in cleaned if word))


class _HoursBetween(Func):
    """The hours from the second time to the first."""

    template = "EXTRACT(EPOCH FROM %(expressions)s)::float8 / 3600"
    arg_joiner = " - "
    output_field = FloatField()

    def as_sqlite(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper, **context: Any) -> Any:
        days = "(julianday(%(expressions)s)) * 24"
        return self.as_sql(compiler, connection, template=days, arg_joiner=") - julianday(", **context)


def _scored(user_id: UUID, words: Sequence[str], now: datetime | None = None) -> QuerySet[Any]:
    """The user's active notes that hold now, each with its keyword score and what it is made of."""
    at = Value(now or timezone.now(), output_field=DateTimeField())
    hours = _HoursBetween(at, Coalesce("last_accessed", "created_at"))
    recency = Greatest(Value(0.0), Least(Value(1.0), 1.0 - hours / RECENCY_HOURS))
    notes = Memory.objects.for_user(user_id).filter(holds_at(at), status=Status.ACTIVE)
    return notes.annotate(
        priority_now=present_priority(current_cycle(user_id)),
        # No tag has a line break: it is what stands between them.
        tag_hits=_hits("folded_tags", [word for word in words if "\n" not in word]),
        content_hits=_hits("folded_content", words),
        score=F("priority_now")
        + TAG_WEIGHT * F("tag_hits")
        + CONTENT_WEIGHT * F("content_hits")
        + RECENCY_WEIGHT * recency,
    )


def _first(notes: QuerySet[Any], limit: int) -> list[RelevantNote]:
    return [
        RelevantNote(note, note.score, note.tag_hits, note.content_hits)
        for note in notes[: min(max(limit, 0), MAX_RELEVANT)]
    ]


def _hits(column: str, words: Sequence[str]) -> Combinable:
    """In how many of the words' cases the column contains them."""
    found = (Least(StrIndex(column, Value(word)), Value(1)) for word in words)
    return reduce(add, found, Value(0))
