"""Notes by keywords: the documented score, and what `recall_memory` finds."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import add, or_
from uuid import UUID

from django.db.models import DateTimeField, F, FloatField, Func, Q, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce, Greatest, Least, StrIndex
from django.utils import timezone

from apps.core.errors import InvalidInput
from apps.core.text import clean_text
from apps.memory.fields import MAX_TAG_CHARS
from apps.memory.models import PRIORITY_FLOOR, Memory, Status
from apps.memory.models.folding import fold

from .filters import has_tag
from .notes import current_cycle, present_priority

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
    return _ranked(user_id, _Wanted(_clean(keywords), limit, order=("-score",)), now)


def memory_matching(
    user_id: UUID, keywords: Sequence[str], *, limit: int = 5, now: datetime | None = None
) -> list[RelevantNote]:
    """As `memory_relevant`, faded notes included, without the notes that match no keyword."""
    wanted = _Wanted(_clean(keywords), limit, order=("-score",), matching=True, floor=0.0)
    return _ranked(user_id, wanted, now)


def memory_recall(
    user_id: UUID, keywords: Sequence[str], *, only: RecallFilter = ANY, limit: int = 10
) -> list[RelevantNote]:
    """The notes that contain a keyword in a tag or the content, highest present priority first, then by score.

    Without keywords all notes of the tier and tags asked for. The faded, below 0.05, are left out.
    """
    words = _clean(keywords)
    return _ranked(
        user_id,
        _Wanted(words, limit, order=("-priority_now", "-score"), matching=bool(words), only=only),
        timezone.now(),
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    keywords: tuple[str, ...]
    limit: int
    order: tuple[str, ...]
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


class _HoursBetween(Func):
    """The hours from the second time to the first, as SQLite counts them."""

    template = "(julianday(%(expressions)s)) * 24"
    arg_joiner = ") - julianday("
    output_field = FloatField()


def _ranked(user_id: UUID, wanted: _Wanted, now: datetime | None) -> list[RelevantNote]:
    at = Value(now or timezone.now(), output_field=DateTimeField())
    hours = _HoursBetween(at, Coalesce("last_accessed", "created_at"))
    recency = Greatest(Value(0.0), Least(Value(1.0), 1.0 - hours / RECENCY_HOURS))
    notes = (
        Memory.objects.for_user(user_id)
        .annotate(priority_now=present_priority(current_cycle(user_id)))
        .filter(Q(valid_from=None) | Q(valid_from__lte=at), Q(valid_to=None) | Q(valid_to__gt=at))
        .filter(_tagged(wanted.only.tags), status=Status.ACTIVE, priority_now__gte=wanted.floor)
        .annotate(
            # No tag has a line break: it is what stands between them.
            tag_hits=_hits("folded_tags", [word for word in wanted.keywords if "\n" not in word]),
            content_hits=_hits("folded_content", wanted.keywords),
            score=F("priority_now")
            + TAG_WEIGHT * F("tag_hits")
            + CONTENT_WEIGHT * F("content_hits")
            + RECENCY_WEIGHT * recency,
        )
    )
    if wanted.only.tier:
        notes = notes.filter(tier=wanted.only.tier)
    if wanted.matching:
        notes = notes.filter(Q(tag_hits__gt=0) | Q(content_hits__gt=0))
    best = notes.order_by(*wanted.order, "-created_at", "-pk")[: min(max(wanted.limit, 0), MAX_RELEVANT)]
    return [
        RelevantNote(note, vars(note)["score"], vars(note)["tag_hits"], vars(note)["content_hits"])
        for note in best
    ]


def _hits(column: str, words: Sequence[str]) -> Combinable:
    """In how many of the words' cases the column contains them."""
    found = (Least(StrIndex(column, Value(word)), Value(1)) for word in words)
    return reduce(add, found, Value(0))


def _tagged(tags: Collection[str]) -> Q:
    """Notes with at least one of the tags, where there are any."""
    cleaned = (clean_text(tag, field="tags", max_chars=MAX_TAG_CHARS, allow_empty=True) for tag in tags)
    return reduce(or_, map(has_tag, cleaned), Q())
