"""Counting a user's memory: one pass over the notes, and what reading has cost."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.utils import timezone

from apps.accounts.selectors import user_time_zone
from apps.agent.models import ModelCall
from apps.core.text import fold
from apps.memory.capture.selectors import PURPOSES, TOKENS
from apps.memory.models import Memory, Status
from apps.memory.notes.linked import best_linked
from apps.memory.notes.selectors import commonest
from apps.memory.quality import duplicate_ids, memory_quality, most_used, never_used

DAYS = 30
"""Days of which costs and growth are kept one by one, today included."""
PAIRS_KEPT = 100
TAGS_KEPT = 1_000
OLDEST_UNUSED = 3
AT_ONCE = 2_000


@dataclass(slots=True)
class Counted:
    """Figures of a memory, JSON-ready; months and days are the user's.

    `kinds`, `sources` and `terms` count active notes, `months` (`2031-05`) and `days` (`2031-05-17`, the last DAYS) when notes were
    saved that are not deleted. `cost` are days with tokens and dollars of reading by itself. `quality` is `memory_quality`,
    `pairs` the first of its duplicates.
    """

    notes: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    terms: dict[str, int] = field(default_factory=dict)
    months: dict[str, int] = field(default_factory=dict)
    days: dict[str, int] = field(default_factory=dict)
    cost: list[tuple[str, int, float]] = field(default_factory=list)
    quality: dict[str, Any] = field(default_factory=dict)
    pairs: list[tuple[str, str, float]] = field(default_factory=list)
    most_used: list[str] = field(default_factory=list)
    never_used: list[str] = field(default_factory=list)  # the oldest ones' ids
    linked: list[str] = field(
        default_factory=list
    )  # ids of the best linked, as `best_linked` gives them
    linked_in_all: int = 0


Words = list[tuple[str, int]]
"""Words with how many active notes have them, the commonest first."""


def counted(user_id: UUID, now: datetime | None = None) -> tuple[Counted, Words, Words]:
    """The figures, the tags and the categories as of now."""
    zone = user_time_zone(user_id)
    today = (now or timezone.now()).astimezone(zone).date()
    figures = Counted()
    kinds, sources, terms, months, days = (Counter[str]() for _ in range(5))
    first = today - timedelta(days=DAYS - 1)
    tags: dict[str, Counter[str]] = {}
    categories = Counter[str]()
    columns = ("status", "kind", "origin", "tier", "created_at", "tags", "category")
    rows = Memory.objects.for_user(user_id).order_by().values_list(*columns)
    for status, kind, origin, tier, created_at, own_tags, category in rows.iterator(AT_ONCE):
        figures.notes += 1
        day = created_at.astimezone(zone).date()
        months[f"{day:%Y-%m}"] += 1
        if day >= first:
            days[day.isoformat()] += 1
        if status != Status.ACTIVE:
            continue
        kinds[kind] += 1
        sources[origin] += 1
        terms[tier] += 1
        if category:
            categories[category] += 1
        for tag in own_tags:
            tags.setdefault(fold(tag), Counter())[tag] += 1
    figures.kinds, figures.sources, figures.terms = map(commonest, (kinds, sources, terms))
    figures.months, figures.days = dict(sorted(months.items())), dict(sorted(days.items()))
    figures.cost = _cost(user_id, first, zone)
    pairs = duplicate_ids(user_id)
    figures.quality = memory_quality(user_id, pairs=pairs)
    figures.pairs = [(str(one), str(two), similarity) for one, two, similarity in pairs[:PAIRS_KEPT]]
    figures.most_used = [str(note.pk) for note in most_used(user_id).only("pk")]
    if figures.quality["never_used"]:
        figures.never_used = [str(note.pk) for note in never_used(user_id).only("pk")[:OLDEST_UNUSED]]
    linked, figures.linked_in_all = best_linked(user_id)
    figures.linked = [str(key) for key in linked]
    spelled = {seen.most_common(1)[0][0]: seen.total() for seen in tags.values()}
    return figures, list(commonest(spelled).items()), list(commonest(categories).items())


def _cost(user_id: UUID, first: date, zone: ZoneInfo) -> list[tuple[str, int, float]]:
    """Tokens and dollars by day, of days with any."""
    since = datetime.combine(first, datetime.min.time(), zone)
    calls = ModelCall.objects.for_user(user_id).filter(purpose__in=PURPOSES, created_at__gte=since)
    days: dict[date, list[float]] = {}
    rows = calls.order_by().annotate(tokens=TOKENS).values_list("created_at", "tokens", "cost_usd")
    for moment, tokens, cost in rows.iterator(AT_ONCE):
        day = days.setdefault(moment.astimezone(zone).date(), [0, 0.0])
        day[0] += tokens
        day[1] += float(cost)
    return [
        (day.isoformat(), int(tokens), round(cost, 6)) for day, (tokens, cost) in sorted(days.items())
    ]
