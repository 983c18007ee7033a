"""The memories page's part on passages of conversations that are still to be read."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from apps.accounts.access import SignedInRequest
from apps.memory.capture.selectors import capture_status, given_up
from apps.memory.capture.windows import windows_retry

NOTHING = "Nothing was left to try again."


def capture_context(user_id: UUID) -> dict[str, Any]:
    """Context of `memory/_capture.html`."""
    status = capture_status(user_id)
    return {"capture": status, "given_up": given_up(user_id) if status.gave_up else []}


@require_POST
def retry(request: SignedInRequest) -> HttpResponse:
    """Passages that were given up are read once more."""
    count = windows_retry(user_id=request.user.pk)
    said = f"{count} {'passage is' if count == 1 else 'passages are'} read once more." if count else NOTHING
    if not request.headers.get("HX-Request"):
        messages.success(request, said)
        return redirect("memory:list")
    return render(request, "memory/_capture.html", capture_context(request.user.pk) | {"said": said})
