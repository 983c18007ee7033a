"""Reads: what waits, why, and what reading has brought and cost."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count, Q, Sum
from django.utils import timezone

from apps.accounts.selectors import preferences_for
from apps.agent.endpoint import current_endpoint
from apps.agent.models import ModelCall
from apps.memory.models import CaptureWindow, GateVerdict, WindowState

from .budget import PURPOSES, TOKENS, spent_today
from .said import Segment

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
    def sentence(self) -> str:
        """Text for the memories page; "" when there is nothing the user would want to know."""
        return " ".join(part for part in (self.waiting_sentence, self.given_up_sentence) if part)

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
        return f"{passages(self.gave_up)} could not be read."


def passages(count: int) -> str:
    """1 passage, 2 passages …"""
    return "1 passage" if count == 1 else f"{count:,} passages"


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A passage that could not be read: its new words, when it was said, what went wrong."""

    conversation: UUID
    words: str
    when: datetime
    problem: str


def given_up(user_id: UUID, limit: int = 20) -> list[GivenUp]:
    """The newest passages that were given up."""
    rows = CaptureWindow.objects.for_user(user_id).filter(state=WindowState.GAVE_UP).order_by("-id")[:limit]
    return [GivenUp(row.conversation_id, _new_words(row), row.created_at, row.error) for row in rows]


def _new_words(window: CaptureWindow) -> str:
    segments = [Segment.from_json(value) for value in window.segments]
    return " ".join(segment.text for segment in segments if not segment.seen)


def capture_status(user_id: UUID) -> CaptureStatus:
    """How the reading of a user's conversations stands."""
    now = timezone.now()
    rows = CaptureWindow.objects.for_user(user_id)
    tried = Q(state=WindowState.WAITING) & (Q(attempts__gt=0) | Q(delays__gt=0))
    counts = rows.aggregate(
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
