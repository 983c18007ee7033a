"""Making, installing, editing and deleting capabilities, and the buttons of their pages."""

from collections.abc import Callable
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts.access import SignedInRequest
from apps.capabilities.api.views import archive_response
from apps.capabilities.catalog.archives import archive_read
from apps.capabilities.catalog.drafts import Draft
from apps.capabilities.catalog.lifecycle import (
    capability_approve,
    capability_delete,
    capability_disable,
    capability_enable,
    capability_rollback,
)
from apps.capabilities.catalog.selectors import versions_of
from apps.capabilities.catalog.versions import capability_create, draft_of, version_add
from apps.capabilities.models import Capability, Origin
from apps.capabilities.pages.forms import ArchiveForm, EditorForm
from apps.capabilities.pages.opened import found, own
from apps.capabilities.runs.examples import capability_retest
from apps.core.errors import Conflict, IzzyError, NotFound, Unavailable

SAVED = "Saved as version {number}."
WAITS = " It asks for permissions: look at them below and approve it."
APPROVED = "Approved. Izzy may use it now."
APPROVED_UNTESTED = "Approved. Izzy runs its examples now, with what you allowed."


@require_http_methods(["GET", "POST"])
def create(request: SignedInRequest) -> HttpResponse:
    """The editor with a small example; a POST makes the capability, or answers 422 and what is wrong."""
    form = EditorForm(request.POST) if request.method == "POST" else EditorForm.empty()

    def save(draft: Draft) -> Capability:
        return capability_create(user_id=request.user.pk, name=form.cleaned_data["name"], draft=draft)

    return _editor(request, form, save)


@require_http_methods(["GET", "POST"])
@own
def edit(request: SignedInRequest, capability: str) -> HttpResponse:
    """The editor with the current version, as it is on disk; a POST saves a new one."""
    tool = found(request, capability)
    if tool.current is None:
        messages.error(request, f"{tool.name} has no version yet that could be edited.")
        return redirect("capabilities:overview", capability=tool.name)
    form = EditorForm.of(tool.name, draft_of(tool), request.POST if request.method == "POST" else None)

    def save(draft: Draft) -> Capability:
        return version_add(user_id=request.user.pk, capability_id=tool.pk, draft=draft).capability

    return _editor(request, form, save, tool)


def _editor(
    request: SignedInRequest,
    form: EditorForm,
    save: Callable[[Draft], Capability],
    tool: Capability | None = None,
) -> HttpResponse:
    if form.accepted(lambda: save(form.draft())):
        current = form.made.current
        waits = WAITS if current and not current.is_approved else ""
        messages.success(request, SAVED.format(number=current.number if current else 0) + waits)
        return redirect("capabilities:overview", capability=form.made.name)
    context = {"nav": "capabilities", "form": form, "capability": tool}
    return render(request, "capabilities/editor.html", context, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
def install(request: SignedInRequest) -> HttpResponse:
    """A zip that was taken out elsewhere; what it brings is disabled until it is approved."""
    form = ArchiveForm(request.POST or None, request.FILES or None)
    if form.is_valid():
        try:
            name, draft = archive_read(form.cleaned_data["file"].read())
            made = capability_create(
                user_id=request.user.pk, name=name, draft=draft, origin=Origin.IMPORT, untrusted=True
            )
        except IzzyError as error:
            form.add_error("file", error.message)
        else:
            messages.success(
                request,
                f"{made.name} is installed, but not in use yet. Look at its files, then approve it.",
            )
            return redirect("capabilities:overview", capability=made.name)
    context = {"nav": "capabilities", "form": form}
    return render(
        request, "capabilities/install.html", context, status=422 if request.method == "POST" else 200
    )


@require_POST
@own
def enable(request: SignedInRequest, capability: str) -> HttpResponse:
    return _done(request, capability, capability_enable, "It is in use again.")


@require_POST
@own
def disable(request: SignedInRequest, capability: str) -> HttpResponse:
    return _done(
        request,
        capability,
        capability_disable,
        "It is disabled: Izzy does not use it until you enable it.",
    )


@require_POST
@own
def approve(request: SignedInRequest, capability: str) -> HttpResponse:
    """Allows the version that the page showed."""
    version = _number(request) or 0
    shown = next((row for row in versions_of(found(request, capability)) if row.number == version), None)
    said = APPROVED_UNTESTED if shown and shown.is_unproven else APPROVED
    return _done(request, capability, capability_approve, said, version=version)


@require_POST
@own
def rollback(request: SignedInRequest, capability: str) -> HttpResponse:
    """Makes the chosen version the current one."""
    number = _number(request) or 0
    return _done(
        request,
        capability,
        capability_rollback,
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
    except (Conflict, Unavailable) as error:
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
    capability_delete(user_id=request.user.pk, capability_id=tool.pk)
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
