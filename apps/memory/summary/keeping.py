"""A user's figures: counted in one pass over the notes, kept in a row by the worker, and read by pages, which say when it is too old
for them."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.selectors import user_time_zone
from apps.agent.models import ModelCall
from apps.core.db.prepared import prepared
from apps.core.db.writing import writing_for
from apps.core.jobs.worker import Background
from apps.core.text import fold
from apps.memory.capture.selectors import PURPOSES, TOKENS
from apps.memory.models import Memory, MemorySummary, PurgeReceipt, Status
from apps.memory.notes.linked import best_linked
from apps.memory.notes.selectors import commonest, current_cycle, tag_counts
from apps.memory.quality import duplicate_ids, memory_quality, most_used, never_used
from apps.search.backends import backend

DAYS = 30
"""Days of which costs and growth are kept one by one, today included."""
PAIRS_KEPT = 100
TAGS_KEPT = 1_000
OLDEST_UNUSED = 3
NOTES_AT_ONCE = 2_000


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
    for status, kind, origin, tier, created_at, own_tags, category in rows.iterator(NOTES_AT_ONCE):
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
    for moment, tokens, cost in rows.iterator(NOTES_AT_ONCE):
        day = days.setdefault(moment.astimezone(zone).date(), [0, 0.0])
        day[0] += tokens
        day[1] += float(cost)
    return [
        (day.isoformat(), int(tokens), round(cost, 6)) for day, (tokens, cost) in sorted(days.items())
    ]


SWEEP_EVERY = timedelta(seconds=2)
AT_ONCE = 20
"""Users whose figures one sweep makes."""
LOOK_EVERY = timedelta(hours=1)
HELD = timedelta(minutes=5)
"""So long nobody else counts for a user for whom somebody has begun, or failed."""
MADE_ANEW = timedelta(days=1)
"""Figures that depend on the time alone, such as what was not used for a week, are at most so old."""
ASKED_AGAIN = timedelta(seconds=20)
"""Younger figures are not made anew for whoever looks."""
SMALL = 300
"""A memory of so many notes is counted when it is looked at."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures as of `made_at`, with all tags and categories or the TAGS_KEPT commonest."""

    figures: Counted
    tags: Words
    categories: Words
    made_at: datetime


def summary_of(user_id: UUID) -> Summary | None:
    """The figures: those of a small memory counted now, else those that the worker keeps; None where it has yet to count."""
    row = _row(user_id)
    if row is None:
        return Summary(*counted(user_id), timezone.now())
    return (
        Summary(Counted(**row.figures), row.tags, row.categories, row.made_at) if row.figures else None
    )


def tags_of(user_id: UUID) -> tuple[Words, Words]:
    """The tags and the categories of active notes, as `summary_of` has them."""
    row = _row(user_id)
    if row is not None and row.figures:
        return row.tags, row.categories
    tags, categories = tag_counts(user_id)
    return list(tags.items()), list(categories.items())


def linked_of(user_id: UUID, most: int) -> tuple[list[UUID], int]:
    """The best linked notes, as `best_linked` gives them."""
    row = _row(user_id)
    if row is None or not row.figures:
        return best_linked(user_id, most=most)
    return [UUID(key) for key in row.figures["linked"][:most]], row.figures["linked_in_all"]


def _row(user_id: UUID) -> MemorySummary | None:
    """The row of a memory that is too large to be counted while somebody waits, without figures where the worker has yet to count;
    None for a small one."""
    row = MemorySummary.objects.filter(pk=user_id).first()
    if row is not None and row.figures and row.figures["notes"] > SMALL:
        return row
    notes = Memory.objects.for_user(user_id).order_by()
    if notes.values("pk")[: SMALL + 1].count() <= SMALL:
        return None
    if row is None:
        with writing_for(user_id), transaction.atomic():
            row, _ = MemorySummary.objects.get_or_create(pk=user_id)
    return row


def summary_ask(user_id: UUID) -> None:
    """Have the worker count anew, unless it has just done so."""
    old = MemorySummary.objects.filter(pk=user_id, made_at__lt=timezone.now() - ASKED_AGAIN)
    old.update(due_at=timezone.now(), made_from="")


def due_keep() -> None:
    """Counts for those whose row is due. A row begins when a page first asks for the figures of a large memory."""
    for user_id in _due():
        summary_keep(user_id)


counter = Background("memory summaries", due_keep)


def sweep() -> None:
    """The worker's sweep: starts where something is to be counted."""
    if _due():
        counter.start()


def _due() -> list[UUID]:
    return _due_at(timezone.now())


@prepared
def _due_at(now: datetime) -> QuerySet[MemorySummary, UUID]:
    rows = MemorySummary.objects.filter(due_at__lte=now).order_by("due_at")
    return rows.values_list("pk", flat=True)[:AT_ONCE]


def summary_keep(user_id: UUID) -> None:
    """Counts a user's memory, where anything has changed since it was counted, and stores the figures."""
    now, made_from = timezone.now(), _made_from(user_id)
    with writing_for(user_id), transaction.atomic():
        if not User.objects.filter(pk=user_id).exists():
            return
        row, _ = MemorySummary.objects.get_or_create(pk=user_id)
        same = row.figures and row.made_from == made_from and row.made_at > now - MADE_ANEW
        row.due_at = now + (LOOK_EVERY if same else HELD)
        row.save(update_fields=["due_at"])
    if same:
        return
    figures, tags, categories = counted(user_id, now)
    with writing_for(user_id), transaction.atomic():
        if _made_from(user_id).split()[0] != made_from.split()[0]:
            MemorySummary.objects.filter(pk=user_id).update(due_at=now)
            return  # a purge has begun meanwhile: its words may be among the tags
        MemorySummary.objects.filter(pk=user_id).update(
            figures=asdict(figures),
            tags=tags[:TAGS_KEPT],
            categories=categories[:TAGS_KEPT],
            made_from=made_from,
            made_at=now,
            due_at=now + LOOK_EVERY,
        )


def _made_from(user_id: UUID) -> str:
    """The state that figures are made from, in a word for each: the last purge, the state of the search index, the turns of the chat."""
    purge = (
        PurgeReceipt.objects.for_user(user_id)
        .order_by("-started_at")
        .values_list("pk", flat=True)
        .first()
    )
    head = backend.head(user_id)
    return f"{purge or 0} {head.change if head else 0} {current_cycle(user_id)}"
