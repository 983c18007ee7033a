"""The clock that priorities decay by, and the record of what was read."""

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from apps.memory.fields import STANDING
from apps.memory.models import PRIORITY_FLOOR, DecayCycle, Memory, Origin, Status, Tier
from apps.memory.selectors import current_cycle, present_priority

from .changes import memory_archive
from .provenance import Change

ARCHIVED_AT_ONCE = 100  # in one transaction: other writers need not wait for all
MAX_IMPORTANCE_ARCHIVED = 3


@transaction.atomic
def cycle_advance(*, user_id: UUID) -> int:
    """One more chat turn: moves the user's decay cycle on, whatever the number of notes; returns the new cycle."""
    rows = DecayCycle.objects.filter(user_id=user_id)
    if not rows.update(cycle=F("cycle") + 1):
        DecayCycle.objects.get_or_create(user_id=user_id)  # another process may have been quicker
        rows.update(cycle=F("cycle") + 1)
    return current_cycle(user_id)


def access_record(*, user_id: UUID, memory_ids: Collection[UUID]) -> None:
    """Note that these notes were returned by a tool or surfaced in a turn (a page that lists them does not count)."""
    if memory_ids:
        Memory.objects.owned_by(user_id).filter(pk__in=memory_ids).update(
            access_count=F("access_count") + 1, last_accessed=timezone.now()
        )


def decay_apply(*, user_id: UUID, archive_after: timedelta) -> tuple[int, int]:
    """Write the present priorities of a user's notes and archive those that faded and were neither read nor changed for
    `archive_after`: short-term ones of importance 3 and less, none that stands beside every conversation.

    Returns (notes written, notes archived). What is searchable or shown does not change by the writing.
    """
    written, archived = _write_present(user_id), 0
    while batch := _archive_faded(user_id, archive_after):
        archived += batch
    return written, archived


@transaction.atomic
def _write_present(user_id: UUID) -> int:
    cycle = current_cycle(user_id)
    behind = Memory.objects.for_user(user_id).filter(priority_cycle__lt=cycle)
    return behind.update(priority=present_priority(cycle), priority_cycle=cycle)


@transaction.atomic
def _archive_faded(user_id: UUID, archive_after: timedelta) -> int:
    """Archives the next ARCHIVED_AT_ONCE, locked, so that one that is read or deleted meanwhile is left alone."""
    before = timezone.now() - archive_after
    unread = Q(last_accessed__lt=before) | Q(last_accessed=None)
    notes = Memory.objects.for_user(user_id).annotate(priority_now=present_priority(current_cycle(user_id)))
    due = notes.exclude(category=STANDING).filter(
        unread,
        updated_at__lt=before,  # one that was brought back lately has its time before it again
        priority_now__lt=PRIORITY_FLOOR,
        status=Status.ACTIVE,
        tier=Tier.SHORT_TERM,
        importance__lte=MAX_IMPORTANCE_ARCHIVED,
    )
    ids = list(due.select_for_update().values_list("pk", flat=True)[:ARCHIVED_AT_ONCE])
    change = Change(actor=Origin.ASSISTANT, reason="faded and unread")
    for memory_id in ids:
        memory_archive(user_id=user_id, memory_id=memory_id, change=change)
    return len(ids)
