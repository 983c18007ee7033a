"""Helpers of the capabilities' pages."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.http import Http404, HttpResponse
from django.shortcuts import render

from apps.accounts.access import SignedInRequest
from apps.capabilities.files import is_tampered
from apps.capabilities.models import Capability, CapabilityVersion, Status
from apps.capabilities.selectors import (
    capability_get,
    retire_reason,
    secrets_missing,
    success_rate,
    version_waiting,
)
from apps.core.errors import NotFound
from apps.core.health import checks, recent_result

P = ParamSpec("P")
View = Callable[Concatenate[SignedInRequest, P], HttpResponse]


def own(view: View[P]) -> View[P]:
    """A page of a capability that is unknown or somebody else's is not there."""

    @wraps(view)
    def guarded(request: SignedInRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except NotFound as error:
            raise Http404(error.message) from error

    return guarded


def found(request: SignedInRequest, name: str) -> Capability:
    return capability_get(request.user.pk, name)


def standing(capability: Capability) -> dict[str, str]:
    """`{tone, label}` of the badge that says how a capability stands."""
    if capability.status == Status.ACTIVE and capability.current and not capability.current.is_approved:
        return {"tone": "warn", "label": "Waits for your approval"}
    tones = {Status.ACTIVE: "ok", Status.BUILDING: "accent", Status.FAILED: "danger", Status.DISABLED: ""}
    return {"tone": tones[Status(capability.status)], "label": capability.get_status_display()}


def waiting_standing(waiting: CapabilityVersion) -> dict[str, str]:
    """The same for a newer version that waits beside the one in use."""
    stands = f"Version {waiting.number}"
    if not waiting.is_approved:
        return {"tone": "warn", "label": f"{stands} waits for your approval"}
    if waiting.test_failures:
        return {"tone": "danger", "label": f"{stands} failed its test"}
    if secrets_missing(waiting.user_id, waiting.secrets):
        return {"tone": "warn", "label": f"{stands} needs a secret"}
    return {"tone": "accent", "label": f"{stands} is being tested"}


def percent(capability: Capability) -> str:
    rate = success_rate(capability)
    return "" if rate is None else f"{rate:.0%}"


def sandbox_problem() -> str:
    """Why nothing can be run here at the moment, and what to do about it; "" where it can."""
    check = next((each for each in checks() if each.name == "sandbox"), None)
    result = recent_result(check) if check else None
    return "" if result is None or result.ok else f"{result.message} {result.hint}".strip()


def page(
    request: SignedInRequest,
    template: str,
    capability: Capability,
    tab: str,
    context: dict[str, Any],
    *,
    status: int = 200,
) -> HttpResponse:
    """A page of one capability with its head and tabs."""
    current, waiting = capability.current, version_waiting(capability)
    frame = {
        "nav": "capabilities",
        "tab": tab,
        "capability": capability,
        "version": current,
        "standing": standing(capability),
        "success": percent(capability),
        "retire": retire_reason(capability),
        "sandbox_problem": sandbox_problem(),
        "tampered": bool(current and is_tampered(current, capability.name)),
        "waiting": waiting,
        "waiting_secrets": secrets_missing(request.user.pk, waiting.secrets) if waiting else [],
        "missing_secrets": secrets_missing(request.user.pk, current.secrets) if current else [],
    }
    return render(request, template, {**frame, **context}, status=status)
