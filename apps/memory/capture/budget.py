"""A user's daily budget for reading by itself, and what it has cost today."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import F, QuerySet, Sum

from apps.accounts.selectors import user_time_zone
from apps.agent.models import ModelCall

GATE, EXTRACTION = "gate", "extraction"
PURPOSES = (GATE, EXTRACTION)
"""The purposes under which the usage ledger holds these calls."""
LONGEST_DAY = timedelta(hours=25)
"""On one day of the year the clock is put back."""
TOKENS = F("input_tokens") + F("output_tokens") + F("cache_read_tokens") + F("cache_write_tokens")
"""All tokens of a call, whatever they cost."""


def day_of(user_id: UUID, now: datetime) -> tuple[datetime, datetime]:
    """Begin and end of the user's day, in their time zone."""
    local = now.astimezone(user_time_zone(user_id))
    start = local.replace(hour=0, minute=0, second=0, microsecond=0)
    return start, start + timedelta(days=1)  # by the clock on the wall, also where it is put forward or back


def spent_today(user_id: UUID, now: datetime) -> int:
    """Tokens of all kinds that the gate and the extractor took for this user since midnight."""
    calls = ModelCall.objects.for_user(user_id).filter(
        purpose__in=PURPOSES, created_at__gte=day_of(user_id, now)[0]
    )
    return int(calls.order_by().aggregate(spent=Sum(TOKENS, default=0))["spent"])


def is_spent(user_id: UUID, now: datetime) -> bool:
    return spent_today(user_id, now) >= settings.IZZY_CAPTURE_TOKENS


def spenders(user_ids: QuerySet[Any], now: datetime) -> list[UUID]:
    """Those of the users (a query of ids) who have spent what a day has."""
    since = now - LONGEST_DAY
    calls = ModelCall.objects.unscoped().filter(
        purpose__in=PURPOSES, created_at__gte=since, user_id__in=user_ids
    )
    totals = calls.order_by().values("user_id").annotate(spent=Sum(TOKENS))
    lately = totals.filter(spent__gte=settings.IZZY_CAPTURE_TOKENS).values_list("user_id", flat=True)
    return [user_id for user_id in lately if is_spent(user_id, now)]
