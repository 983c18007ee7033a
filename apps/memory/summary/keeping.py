"""The row with a user's figures: the worker keeps it, pages read it, and say when it is too old for them."""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connections, transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.core.db.prepared import prepared
from apps.core.db.writing import writing_for
from apps.core.jobs.worker import Background
from apps.memory.models import Memory, MemorySummary, PurgeReceipt
from apps.memory.notes.linked import best_linked
from apps.memory.notes.selectors import current_cycle, tag_counts
from apps.search.backends import backend

from .counting import TAGS_KEPT, Counted, Words, counted

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


def _work() -> None:
    try:
        due_keep()
    finally:
        connections.close_all()


counter = Background("memory summaries", _work)


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
