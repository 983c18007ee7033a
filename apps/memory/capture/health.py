"""The `doctor` check of reading conversations."""

from django.utils import timezone

from apps.agent.endpoint import current_endpoint
from apps.core.health import CheckResult, not_set_up
from apps.memory.models import CaptureWindow, WindowState

from .budget import spenders
from .selectors import passages


def check_capture() -> CheckResult:
    """Whether conversations are read for what is worth remembering, over all users."""
    rows = CaptureWindow.objects.unscoped()
    waiting = rows.filter(state=WindowState.WAITING)
    count, now = waiting.count(), timezone.now()
    wait = f"{passages(count)} {'waits' if count == 1 else 'wait'} to be read"
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
    return CheckResult(True, f"Izzy remembers by itself; {wait}." if count else "Izzy remembers by itself.")
