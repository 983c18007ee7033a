"""Reads: what waits, why, what a user's daily budget is, and what reading has brought and cost."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, F, Q, QuerySet, Sum
from django.utils import timezone

from apps.accounts.selectors import preferences_for, user_time_zone
from apps.agent.model.client import current_endpoint
from apps.agent.models import ModelCall
from apps.core.health import CheckResult, not_set_up
from apps.memory.models import CaptureWindow, GateVerdict, WindowState

GATE, EXTRACTION, OCCASIONS = "gate", "extraction", "occasions"
PURPOSES = (GATE, EXTRACTION, OCCASIONS)
"""The purposes under which the usage ledger holds these calls."""
LONGEST_DAY = timedelta(hours=25)
"""On one day of the year the clock is put back."""
TOKENS = F("input_tokens") + F("output_tokens") + F("cache_read_tokens") + F("cache_write_tokens")
"""All tokens of a call, whatever they cost."""


def windows_due() -> QuerySet[CaptureWindow]:
    """The windows of all users that may be read by now."""
    waiting = CaptureWindow.objects.unscoped().filter(state=WindowState.WAITING)
    return waiting.filter(due_at__lte=timezone.now())


def day_of(user_id: UUID, now: datetime) -> tuple[datetime, datetime]:
    """Begin and end of the user's day, in their time zone."""
    local = now.astimezone(user_time_zone(user_id))
    start = local.replace(hour=0, minute=0, second=0, microsecond=0)
    return start, start + timedelta(
        days=1
    )  # by the clock on the wall, also where it is put forward or back


def spent_today(user_id: UUID, now: datetime) -> int:
    """Tokens of all kinds that remembering by itself took for this user since midnight."""
    calls = ModelCall.objects.for_user(user_id).filter(
        purpose__in=PURPOSES, created_at__gte=day_of(user_id, now)[0]
    )
    return int(calls.order_by().aggregate(spent=Sum(TOKENS, default=0))["spent"])


def is_spent(user_id: UUID, now: datetime, share: float = 1.0) -> bool:
    """Whether this share of what a day has is spent."""
    return spent_today(user_id, now) >= share * settings.IZZY_CAPTURE_TOKENS


def spenders(user_ids: QuerySet[Any], now: datetime) -> list[UUID]:
    """Those of the users (a query of ids) who have spent what a day has."""
    since = now - LONGEST_DAY
    calls = ModelCall.objects.unscoped().filter(
        purpose__in=PURPOSES, created_at__gte=since, user_id__in=user_ids
    )
    totals = calls.order_by().values("user_id").annotate(spent=Sum(TOKENS))
    lately = totals.filter(spent__gte=settings.IZZY_CAPTURE_TOKENS).values_list("user_id", flat=True)
    return [user_id for user_id in lately if is_spent(user_id, now)]


NO_MODEL, SPENT, RETRYING, OFF = "no_model", "budget_spent", "retrying", "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureStatus:
    """`waiting` counts all windows that are not read yet, those `retrying` (after a failure) among them.

    `reason` says why they wait (`no_model`, `budget_spent`, `retrying`, `off`, "" when they are read shortly),
    `problem` in words what went wrong last. Tokens are those of today, in the user's time zone.
    """

    waiting: int
    retrying: int
    gave_up: int
    spent_today: int
    budget: int
    reason: str
    problem: str = ""

    @property
    def waiting_sentence(self) -> str:
        """Why passages wait; "" when none do, or when they are read shortly."""
        if self.reason not in {NO_MODEL, SPENT, RETRYING}:
            return ""
        wait = f"{passages(self.waiting)} of your conversations {'waits' if self.waiting == 1 else 'wait'} to be read: "
        if self.reason == NO_MODEL:
            return f"{wait}no model is connected."
        if self.reason == SPENT:
            return f"{wait}today's tokens for it are spent. It goes on tomorrow."
        return f"{wait}{self.problem}"

    @property
    def given_up_sentence(self) -> str:
        """How many passages were given up; "" for none."""
        if not self.gave_up:
            return ""
        return f"{passages(self.gave_up)} of your conversations could not be read."


def passages(count: int) -> str:
    """1 part, 2 parts …: a passage, in people's words."""
    return "1 part" if count == 1 else f"{count:,} parts"


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage that waits or could not be read: its new words, when it was said, what went wrong last."""

    conversation: UUID
    words: str
    when: datetime
    problem: str
    due: datetime

    @classmethod
    def of(cls, row: CaptureWindow) -> "Passage":
        """That of a window which has not been read."""
        words = " ".join(segment["text"] for segment in row.segments if not segment["seen"])
        return cls(row.conversation_id, words, row.created_at, row.error, row.due_at)


def given_up(user_id: UUID, limit: int = 20) -> list[Passage]:
    """The newest passages that were given up."""
    rows = CaptureWindow.objects.for_user(user_id).filter(state=WindowState.GAVE_UP).order_by("-id")
    return [Passage.of(row) for row in rows[:limit]]


def waiting_windows(user_id: UUID) -> QuerySet[CaptureWindow]:
    """The windows that are still to be read, in the order in which they are."""
    rows = CaptureWindow.objects.for_user(user_id).filter(state=WindowState.WAITING)
    return rows.order_by("due_at", "id")


def capture_status(user_id: UUID) -> CaptureStatus:
    """How the reading of a user's conversations stands."""
    now = timezone.now()
    rows = CaptureWindow.objects.for_user(user_id)
    tried = Q(state=WindowState.WAITING) & (Q(attempts__gt=0) | Q(delays__gt=0))
    counts = rows.filter(state__in=[WindowState.WAITING, WindowState.GAVE_UP]).aggregate(
        waiting=Count("pk", filter=Q(state=WindowState.WAITING)),
        retrying=Count("pk", filter=tried),
        gave_up=Count("pk", filter=Q(state=WindowState.GAVE_UP)),
    )
    failed = rows.filter(tried).exclude(error="").order_by("-id").values_list("error", flat=True).first()
    spent = spent_today(user_id, now)
    return CaptureStatus(
        **counts,
        spent_today=spent,
        budget=settings.IZZY_CAPTURE_TOKENS,
        reason=_reason(user_id, counts, spent),
        problem=failed or "",
    )


def _reason(user_id: UUID, counts: dict[str, int], spent: int) -> str:
    if not preferences_for(user_id).capture:
        return OFF
    if not counts["waiting"]:
        return ""
    if current_endpoint().is_offline:
        return NO_MODEL
    if spent >= settings.IZZY_CAPTURE_TOKENS:
        return SPENT
    return RETRYING if counts["retrying"] else ""


def capture_figures(user_id: UUID) -> dict[str, Any]:
    """Sums of what reading has brought and cost this user, over all windows and model calls."""
    rows = CaptureWindow.objects.for_user(user_id)
    judged = Q(gate__in=[GateVerdict.PASSED, GateVerdict.IDLE])
    figures = rows.aggregate(
        windows=Count("pk"),
        waiting=Count("pk", filter=Q(state=WindowState.WAITING)),
        gave_up=Count("pk", filter=Q(state=WindowState.GAVE_UP)),
        gated=Count("pk", filter=judged),
        passed=Count("pk", filter=Q(gate=GateVerdict.PASSED)),
        repeated=Count("pk", filter=Q(gate=GateVerdict.REPEATED)),
        memories=Sum("added", default=0),
        merged=Sum("merged", default=0),
        superseded=Sum("superseded", default=0),
        pending=Sum("pending", default=0),
        skipped=Sum("skipped", default=0),
        injected_again=Sum("injected_again", default=0),
    )
    calls = ModelCall.objects.for_user(user_id).filter(purpose__in=PURPOSES).order_by()
    cost = calls.aggregate(tokens=Sum(TOKENS, default=0), cost=Sum("cost_usd", default=0))
    made = figures["memories"] + figures["superseded"] + figures["pending"]
    return {
        **figures,
        "tokens": int(cost["tokens"]),
        "cost_usd": float(cost["cost"]),
        "tokens_per_memory": round(cost["tokens"] / made) if made else None,
        "cost_per_memory": round(float(cost["cost"]) / made, 6) if made else None,
    }


def check_capture() -> CheckResult:
    """Whether conversations are read for what is worth remembering, over all users."""
    rows = CaptureWindow.objects.unscoped()
    waiting = rows.filter(state=WindowState.WAITING)
    count, now = waiting.count(), timezone.now()
    wait = f"{passages(count)} of conversations {'waits' if count == 1 else 'wait'} to be read"
    if current_endpoint().is_offline:
        return not_set_up(
            f"{wait}: no model is connected."
            if count
            else "Conversations are not read: no model is connected.",
            gives="With a model Izzy keeps what is worth remembering by itself; what was said until then is read then.",
            how="Set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL.",
        )
    if gave_up := rows.filter(state=WindowState.GAVE_UP).count():
        return CheckResult(
            False,
            f"{passages(gave_up)} of conversations could not be read; {wait}.",
            "See the reasons in the admin (capture windows), then run: manage.py extract --retry",
        )
    failed = waiting.filter(due_at__gt=now).exclude(error="")
    if (problem := failed.order_by("-id").values_list("error", flat=True).first()) is not None:
        return CheckResult(False, f"{wait}: {problem}", "They are tried again by themselves.")
    if spent := len(spenders(waiting.values("user_id"), now)):
        return CheckResult(
            False,
            f"{wait}: {'a user has' if spent == 1 else f'{spent:,} users have'} spent the day's tokens for it.",
            "It goes on at midnight; IZZY_CAPTURE_TOKENS is what each user has for a day.",
        )
    return CheckResult(
        True, f"Izzy remembers by itself; {wait}." if count else "Izzy remembers by itself."
    )
