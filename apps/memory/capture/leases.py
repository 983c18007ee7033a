"""Leases windows to one reader, picks the next, and puts a failed one back."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

from django.db import transaction
from django.db.models import Min, QuerySet
from django.utils import timezone

from apps.accounts.selectors import preferences_for
from apps.agent.model.client import Usage
from apps.core.db.pool import in_db, shielded
from apps.core.db.prepared import prepared
from apps.core.db.writing import writing_for
from apps.core.jobs.leases import LeaseLost
from apps.memory.models import CaptureLease, CaptureWindow, GateVerdict, WindowState

from .selectors import day_of, is_spent
from .windows import NO_WORDS, Segment, stored_segments, user_withdraw

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 5
RETRY_DELAYS = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=25), timedelta(hours=2))
"""Delays after each failure of a window's own; after MAX_ATTEMPTS it is given up."""
SERVER_DELAY, SERVER_DELAY_MOST = timedelta(seconds=30), timedelta(hours=1)
"""Delay, doubled each time, where the model's server is at fault: such a window is never given up."""
SERVER_FAULTS = frozenset(
    {
        "rate_limited",
        "overloaded",
        "model_unavailable",
        "model_auth",
        "model_billing",
        "model_forbidden",
        "model_not_found",
    }
)
"""Failures that say nothing about what was to be read: it waits for the server as long as it takes."""

NO_USAGE = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeasedWindow:
    """A window as it was when reading began."""

    id: UUID
    user_id: UUID
    conversation_id: UUID
    version: int
    gate: str
    fingerprint: str
    segments: Sequence[Segment]
    shown: Sequence[tuple[str | None, str]]
    tainted: bool  # others' words were read in the conversation, or stand in a note that the extractor is shown


USERS_AT_ONCE = 100


def users_due(now: datetime, *, any_time: bool = False, limit: int = USERS_AT_ONCE) -> list[UUID]:
    """Users with a window that may be read and nobody to read it, those first who have waited longest."""
    if any_time:
        return list(_waiting()[:limit])
    return _due(now)[:limit] if limit <= USERS_AT_ONCE else list(_waiting(due_at__lte=now)[:limit])


@prepared
def _due(now: datetime) -> QuerySet[CaptureWindow, UUID]:
    return _waiting(due_at__lte=now)[:USERS_AT_ONCE]


def _waiting(**when: datetime) -> QuerySet[CaptureWindow, UUID]:
    held = CaptureLease.objects.exclude(CaptureLease.lease_free()).values("user_id")
    rows = CaptureWindow.objects.unscoped().filter(state=WindowState.WAITING, **when)
    by_user = rows.exclude(user_id__in=held).order_by().values("user_id").annotate(first=Min("due_at"))
    return by_user.order_by("first", "user_id").values_list("user_id", flat=True)


def user_lease(user_id: UUID) -> bool:
    """Whether this process, of all that may try, now reads this user's windows."""
    CaptureLease.objects.get_or_create(user_id=user_id)
    return CaptureLease.lease_take(user_id)


@asynccontextmanager
async def user_held(user_id: UUID) -> AsyncIterator[bool]:
    """Keeps the user's lease for as long as the block runs, and tells whether it was to be had. Where another process takes it
    meanwhile the block ends. What is written inside is this user's."""
    with writing_for(user_id):
        if not await in_db(user_lease, user_id):
            yield False
            return
        try:
            async with CaptureLease.lease_kept(user_id):
                yield True
        except LeaseLost:
            logger.warning("another process remembers for user %s by now", user_id)
        finally:
            await shielded(in_db(CaptureLease.lease_release, user_id))


@transaction.atomic
def window_next(user_id: UUID, *, any_time: bool, tried: frozenset[UUID]) -> LeasedWindow | None:
    """The user's oldest window that may be read; None when there is none, or no more is to be spent today.

    `tried` are left out. Raises LeaseLost.
    """
    CaptureLease.lease_extend(user_id)
    if not preferences_for(user_id).capture:
        user_withdraw(user_id=user_id)
        return None
    now = timezone.now()
    waiting = CaptureWindow.objects.for_user(user_id).filter(state=WindowState.WAITING)
    due = waiting if any_time else waiting.filter(due_at__lte=now)
    window = due.exclude(pk__in=tried).order_by("id").first()
    if window is None:
        return None
    if is_spent(user_id, now):
        waiting.filter(due_at__lt=day_of(user_id, now)[1]).update(due_at=day_of(user_id, now)[1])
        return None
    return LeasedWindow(
        id=window.pk,
        user_id=user_id,
        conversation_id=window.conversation_id,
        version=window.version,
        gate=window.gate,
        fingerprint=window.fingerprint,
        segments=stored_segments(window),
        shown=[(entry["id"], entry["text"]) for entry in window.shown],
        tainted=window.tainted,
    )


def window_locked(leased: LeasedWindow) -> CaptureWindow | None:
    """The window's row, locked, where it still waits as it was read; None where it was changed or withdrawn meanwhile.

    Changed is also what a purge has taken words out of. Call it inside a transaction. Raises LeaseLost.
    """
    CaptureLease.lease_extend(leased.user_id)
    rows = CaptureWindow.objects.for_user(leased.user_id).select_for_update()
    window = rows.filter(pk=leased.id, state=WindowState.WAITING, version=leased.version).first()
    as_read = [segment.to_json() for segment in leased.segments]
    return window if window is not None and window.segments == as_read else None


@transaction.atomic
def gate_store(
    leased: LeasedWindow, verdict: GateVerdict, reason: str = "", usage: Usage = NO_USAGE
) -> bool:
    """Keeps what the gate said, so that it is asked once; ends a window that did not pass. False where it has changed meanwhile."""
    window = window_locked(leased)
    if window is None:
        return False
    window.gate, window.gate_reason = verdict, reason
    usage_count(window, usage)
    if verdict == GateVerdict.PASSED:
        window.save(update_fields=["gate", "gate_reason", "used_tokens", "cost_usd"])
    else:
        window_done(window)
    return True


def usage_count(window: CaptureWindow, usage: Usage) -> None:
    """Adds a call's tokens and cost to a window's, unsaved."""
    window.used_tokens += tokens_of(usage)
    window.cost_usd += Decimal(str(round(usage.cost_usd, 6)))


def tokens_of(usage: Usage) -> int:
    """All tokens of a call, whatever they cost."""
    return usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens


def window_done(window: CaptureWindow) -> None:
    """Marks a locked window as read and drops its words. Call it in the transaction that applies its results."""
    window.state, window.done_at, window.error_code = WindowState.DONE, timezone.now(), ""
    for name, value in NO_WORDS.items():
        setattr(window, name, value)
    if window.gate == GateVerdict.PASSED:
        window.gate_reason = ""  # what was worth it stands in the notes now
    window.save()


@transaction.atomic
def window_failed(
    leased: LeasedWindow,
    *,
    code: str,
    message: str,
    server: bool,
    retry_after: float | None = None,
    usage: Usage = NO_USAGE,
) -> timedelta | None:
    """Puts a window back with the reason; returns how long it waits now, None where it was given up or has changed.

    `usage` is that of a call which came to nothing.
    """
    window = window_locked(leased)
    if window is None:
        return None
    usage_count(window, usage)
    window.error_code, window.error = code[:48], message[:300]
    if server:
        window.delays += 1
        delay = min(SERVER_DELAY * 2 ** min(window.delays - 1, 10), SERVER_DELAY_MOST)
        delay = max(delay, timedelta(seconds=min(retry_after or 0.0, 86_400)))
    else:
        window.attempts += 1
        delay = RETRY_DELAYS[min(window.attempts, len(RETRY_DELAYS)) - 1]
    window.due_at = timezone.now() + delay
    if window.attempts >= MAX_ATTEMPTS:
        window.state, window.done_at = WindowState.GAVE_UP, timezone.now()
    window.save()
    return None if window.state == WindowState.GAVE_UP else delay
