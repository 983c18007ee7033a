"""Notes by keywords: the documented score, and what `recall_memory` finds."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from apps.core.errors import InvalidInput
from apps.core.text import clean_text
from apps.memory.database.folding import fold
from apps.memory.fields import MAX_TAG_CHARS
from apps.memory.models import PRIORITY_FLOOR, Memory, Status

from .notes import current_cycle, memories_by_id
from .relevant_sql import scored_sql

TAG_WEIGHT = 0.3
CONTENT_WEIGHT = 0.2
RECENCY_WEIGHT = 0.2
RECENCY_HOURS = 24
MAX_KEYWORDS = 20
MAX_KEYWORD_CHARS = 100
MAX_RELEVANT = 100


@dataclass(frozen=True, slots=True)
class RelevantNote:
    """A note with its keyword score, and in how many of the keywords' cases a tag or the content contains them."""

    note: Memory
    score: float
    tag_hits: int
    content_hits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallFilter:
    """Limits of a recall: the tier, and tags of which a note must have at least one. Empty values do not limit."""

    tier: str = ""
    tags: Collection[str] = ()


ANY = RecallFilter()


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
    return _ranked(user_id, _Wanted(_clean(keywords), limit, order="score"), now)


def memory_matching(
    user_id: UUID, keywords: Sequence[str], *, limit: int = 5, now: datetime | None = None
) -> list[RelevantNote]:
    """As `memory_relevant`, faded notes included, without the notes that match no keyword."""
    wanted = _Wanted(_clean(keywords), limit, order="score", matching=True, floor=0.0)
    return _ranked(user_id, wanted, now)


def memory_recall(
    user_id: UUID, keywords: Sequence[str], *, only: RecallFilter = ANY, limit: int = 10
) -> list[RelevantNote]:
    """The notes that contain a keyword in a tag or the content, highest present priority first, then by score.

    Without keywords all notes of the tier and tags asked for. The faded, below 0.05, are left out.
    """
    words = _clean(keywords)
    return _ranked(
        user_id, _Wanted(words, limit, order="present", matching=bool(words), only=only), timezone.now()
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    keywords: tuple[str, ...]
    limit: int
    order: str
    matching: bool = False
    floor: float = PRIORITY_FLOOR
    only: RecallFilter = ANY


def _clean(keywords: Sequence[str]) -> tuple[str, ...]:
    """The keywords as they are compared, each once."""
    if isinstance(keywords, str) or len(keywords) > MAX_KEYWORDS:
        raise InvalidInput(f"keywords must be a list of at most {MAX_KEYWORDS} texts.", field="keywords")
    cleaned = (
        clean_text(word, field="keywords", max_chars=MAX_KEYWORD_CHARS, allow_empty=True) for word in keywords
    )
    return tuple(dict.fromkeys(fold(word) for word in cleaned if word))


def _ranked(user_id: UUID, wanted: _Wanted, now: datetime | None) -> list[RelevantNote]:
    with connection.cursor() as cursor:
        cursor.execute(*_statement(user_id, wanted, now or timezone.now()))
        rows = cursor.fetchall()
    ids = [value if isinstance(value, UUID) else UUID(value) for value, *_ in rows]
    notes = memories_by_id(user_id, ids)
    return [
        RelevantNote(notes[memory_id], score, tag_hits, content_hits)
        for memory_id, (_, score, tag_hits, content_hits) in zip(ids, rows, strict=True)
        if memory_id in notes
    ]


def _statement(user_id: UUID, wanted: _Wanted, now: datetime) -> tuple[str, dict[str, Any]]:
    tags = [
        fold(clean_text(tag, field="tags", max_chars=MAX_TAG_CHARS, allow_empty=True))
        for tag in wanted.only.tags
    ]
    parameters: dict[str, Any] = {
        "user": Memory._meta.pk.get_db_prep_value(user_id, connection),
        "cycle": current_cycle(user_id),
        "now": connection.ops.adapt_datetimefield_value(now),
        "status": str(Status.ACTIVE),
        "floor": wanted.floor,
        "tag_weight": TAG_WEIGHT,
        "content_weight": CONTENT_WEIGHT,
        "recency_weight": RECENCY_WEIGHT,
        "recency_hours": RECENCY_HOURS,
        "tier": wanted.only.tier,
        "limit": min(max(wanted.limit, 0), MAX_RELEVANT),
    }
    for number, word in enumerate(wanted.keywords):
        parameters[f"like{number}"] = f"%{connection.ops.prep_for_like_query(word)}%"
    parameters |= {f"tag{number}": tag for number, tag in enumerate(tags)}
    sql = scored_sql(
        keywords=wanted.keywords,
        tags=len(tags),
        matching=wanted.matching,
        order=wanted.order,
    )
    return sql, parameters
