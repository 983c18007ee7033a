"""The button actions of a capability's pages."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import SignedInRequest
from apps.capabilities import services
from apps.capabilities.api_base import archive_response
from apps.capabilities.examples import capability_retest
from apps.capabilities.selectors import versions_of
from apps.core.errors import IzzyError, NotFound, Unavailable

from .shared import found, own

APPROVED = "Approved. Izzy may use it now."
APPROVED_UNTESTED = "Approved. Izzy runs its examples now, with what you allowed."


@require_POST
@own
def enable(request: SignedInRequest, capability: str) -> HttpResponse:
    return _done(request, capability, services.capability_enable, "It is in use again.")


@require_POST
@own
def disable(request: SignedInRequest, capability: str) -> HttpResponse:
    return _done(
        request,
        capability,
        services.capability_disable,
        "It is disabled: Izzy does not use it until you enable it.",
    )


@require_POST
@own
def approve(request: SignedInRequest, capability: str) -> HttpResponse:
    """Allows the version that the page showed."""
    version = _number(request) or 0
    shown = next((row for row in versions_of(found(request, capability)) if row.number == version), None)
    said = APPROVED_UNTESTED if shown and shown.is_unproven else APPROVED
    return _done(request, capability, services.capability_approve, said, version=version)


@require_POST
@own
def rollback(request: SignedInRequest, capability: str) -> HttpResponse:
    """Makes the chosen version the current one."""
    number = _number(request) or 0
    return _done(
        request,
        capability,
        services.capability_rollback,
        f"Version {number} is the current one now.",
        number=number,
    )


@require_POST
@own
def retest(request: SignedInRequest, capability: str) -> HttpResponse:
    """Repeats the stored examples and says what came of them."""
    tool = found(request, capability)
    try:
        tested = async_to_sync(capability_retest)(user_id=request.user.pk, name=tool.name)
    except Unavailable as error:
        messages.error(request, error.message)
    else:
        if tested.ok and tested.tried:
            messages.success(request, f"All {tested.tried} examples pass.")
        elif tested.ok:
            messages.info(request, "It has no examples that could be repeated.")
        for failure in tested.failures[:5]:
            messages.error(request, failure)
    return redirect("capabilities:overview", capability=tool.name)


@require_POST
@own
def delete(request: SignedInRequest, capability: str) -> HttpResponse:
    """Removes it for good."""
    tool = found(request, capability)
    services.capability_delete(user_id=request.user.pk, capability_id=tool.pk)
    messages.success(request, f"{tool.name} is deleted.")
    return redirect("capabilities:list")


@require_GET
@own
def download(request: SignedInRequest, capability: str) -> HttpResponse:
    """The four files as a zip."""
    return archive_response(found(request, capability))


def _done(
    request: SignedInRequest, name: str, service: Callable[..., Any], said: str, **options: Any
) -> HttpResponse:
    tool = found(request, name)
    try:
        service(user_id=request.user.pk, capability_id=tool.pk, **options)
    except NotFound as error:
        if not options:
            raise
        messages.error(request, error.message)
    except IzzyError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, said)
    return redirect("capabilities:overview", capability=tool.name)


def _number(request: SignedInRequest) -> int | None:
    text = request.POST.get("version", "")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else None
