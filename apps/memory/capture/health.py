"""What `doctor` says about reading conversations."""

from django.utils import timezone

from apps.agent.endpoint import current_endpoint
from apps.core.health import CheckResult
from apps.memory.models import CaptureWindow, WindowState


def check_capture() -> CheckResult:
    """Whether conversations are read for what is worth remembering, over all users."""
    rows = CaptureWindow.objects.unscoped()
    waiting = rows.filter(state=WindowState.WAITING).count()
    gave_up = rows.filter(state=WindowState.GAVE_UP).count()
    passages = f"{waiting:,} {'passage waits' if waiting == 1 else 'passages wait'} to be read"
    if waiting and current_endpoint().is_offline:
        return CheckResult(
            False,
            f"{passages}: no model is connected.",
            "Set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL; nothing is lost, they are read then.",
        )
    failed = rows.filter(state=WindowState.WAITING, due_at__gt=timezone.now()).exclude(error="")
    if gave_up:
        return CheckResult(
            False,
            f"{gave_up:,} passages of conversations could not be read; {passages}.",
            "See the reasons in the admin (capture windows), then run: manage.py extract --retry",
        )
    if (problem := failed.order_by("-id").values_list("error", flat=True).first()) is not None:
        return CheckResult(False, f"{passages}: {problem}", "They are tried again by themselves.")
    return CheckResult(
        True, f"Izzy remembers by itself; {passages}." if waiting else "Izzy remembers by itself."
    )
