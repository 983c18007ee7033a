"""How much building one user may ask for; what one build may use is checked where it runs."""

from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.utils import timezone

from apps.accounts.services import users_lock
from apps.builder.models import OPEN_STATES, Build, State
from apps.core.errors import Throttled
from apps.core.jobs.worker import check_worker

DAY = timedelta(hours=24)
MAX_OPEN = 20
"""Builds of one user that may wait or run; how many of them run at once is IZZY_BUILDS_PER_USER."""


def check_limits(user_id: UUID) -> None:
    """Raises Throttled (`too_many_builds`) where the user has asked for enough within a day, or too much waits.

    Call it in the transaction that adds the build: nobody else adds one of the same user until that ends.
    """
    users_lock([user_id])
    rows = Build.objects.for_user(user_id)
    since = timezone.now() - DAY
    today = rows.filter(created_at__gte=since)
    if today.count() >= settings.IZZY_BUILDS_PER_DAY:
        oldest = today.order_by("-created_at")[
            settings.IZZY_BUILDS_PER_DAY - 1 : settings.IZZY_BUILDS_PER_DAY
        ]
        wait = int((oldest[0].created_at + DAY - timezone.now()).total_seconds()) + 1
        message = (
            f"{settings.IZZY_BUILDS_PER_DAY} builds within a day are the limit (IZZY_BUILDS_PER_DAY). "
            f"The next one may begin in {_duration(wait)}."
        )
        raise Throttled(message, code="too_many_builds", limit=settings.IZZY_BUILDS_PER_DAY, retry_after=wait)
    if rows.filter(state__in=OPEN_STATES).count() >= MAX_OPEN:
        message = f"{MAX_OPEN} builds wait or run already. Wait until one of them has ended, or cancel one."
        raise Throttled(message, code="too_many_builds", limit=MAX_OPEN, retry_after=60)


def held_up(build: Build) -> str:
    """Why a build that waits has not begun, and when it will; "" where nothing holds it up."""
    if build.state != State.QUEUED:
        return ""
    if not check_worker().ok:
        return (
            "Nothing is built at the moment: Izzy's worker is not running. It begins when the worker is back."
        )
    running = Build.objects.unscoped().filter(state=State.RUNNING)
    own = running.filter(user_id=build.user_id).count()
    if own >= settings.IZZY_BUILDS_PER_USER:
        way = "Another build of yours is" if own == 1 else f"{own} builds of yours are"
        return f"{way} under way, and no more may be at once. It begins when one has ended."
    if running.count() >= settings.IZZY_BUILDS:
        return "Other builds are under way. It begins when one of them has ended."
    return ""


def _duration(seconds: int) -> str:
    minutes = -(-seconds // 60)
    if minutes < 120:
        return "a minute" if minutes <= 1 else f"{minutes} minutes"
    return f"{-(-minutes // 60)} hours"
