"""Making and changing capabilities by hand, and installing one from an archive."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from apps.accounts.access import SignedInRequest
from apps.capabilities import services
from apps.capabilities.archives import archive_read
from apps.capabilities.forms import ArchiveForm, EditorForm
from apps.capabilities.models import Capability, Origin
from apps.capabilities.services.versions import draft_of
from apps.core.errors import IzzyError

from .shared import found, own

SAVED = "Saved as version {number}."
WAITS = " It asks for permissions: look at them below and approve it."


@require_http_methods(["GET", "POST"])
def create(request: SignedInRequest) -> HttpResponse:
    """The editor with a small example; a POST makes the capability, or answers 422 and what is wrong."""
    if request.method != "POST":
        return _editor(request, EditorForm.empty())
    form = EditorForm(request.POST)
    if form.is_valid():
        try:
            made = services.capability_create(
                user_id=request.user.pk, name=form.cleaned_data["name"], draft=form.draft()
            )
        except IzzyError as error:
            form.add_failure(error)
        else:
            return _saved(request, made)
    return _editor(request, form, status=422)


@require_http_methods(["GET", "POST"])
@own
def edit(request: SignedInRequest, capability: str) -> HttpResponse:
    """The editor with the current version, as it is on disk; a POST saves a new one."""
    tool = found(request, capability)
    if tool.current is None:
        messages.error(request, f"{tool.name} has no version yet that could be edited.")
        return redirect("capabilities:overview", capability=tool.name)
    if request.method != "POST":
        return _editor(request, EditorForm.of(tool.name, draft_of(tool)), tool)
    form = EditorForm.of(tool.name, draft_of(tool), request.POST)
    if form.is_valid():
        try:
            services.version_add(user_id=request.user.pk, capability_id=tool.pk, draft=form.draft())
        except IzzyError as error:
            form.add_failure(error)
        else:
            return _saved(request, found(request, tool.name))
    return _editor(request, form, tool, status=422)


@require_http_methods(["GET", "POST"])
def install(request: SignedInRequest) -> HttpResponse:
    """A zip that was taken out elsewhere; what it brings is disabled until it is approved."""
    form = ArchiveForm(request.POST or None, request.FILES or None)
    if form.is_valid():
        try:
            name, draft = archive_read(form.cleaned_data["file"].read())
            made = services.capability_create(
                user_id=request.user.pk, name=name, draft=draft, origin=Origin.IMPORT, untrusted=True
            )
        except IzzyError as error:
            form.add_error("file", error.message)
        else:
            messages.success(
                request, f"{made.name} is installed, but not in use yet. Look at its files, then approve it."
            )
            return redirect("capabilities:overview", capability=made.name)
    context = {"nav": "capabilities", "form": form}
    return render(
        request, "capabilities/install.html", context, status=422 if request.method == "POST" else 200
    )


def _saved(request: SignedInRequest, tool: Capability) -> HttpResponse:
    current = tool.current
    number = current.number if current else 0
    waits = bool(current and not current.is_approved)
    messages.success(request, SAVED.format(number=number) + (WAITS if waits else ""))
    return redirect("capabilities:overview", capability=tool.name)


def _editor(
    request: SignedInRequest, form: EditorForm, tool: Capability | None = None, *, status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {"nav": "capabilities", "form": form, "capability": tool}
    return render(request, "capabilities/editor.html", context, status=status)
