"""One note as a fragment: read, edit, delete with undo, history."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.errors import REFUSALS, NotFound
from apps.core.ids import parse_id
from apps.memory import selectors, services
from apps.memory.addressing import addressed
from apps.memory.forms import NoteForm
from apps.memory.history.versions import steps_of
from apps.memory.models import Memory

from .listing import rows_of

P = ParamSpec("P")
View = Callable[Concatenate[SignedInRequest, P], HttpResponse]


def own_note(view: View[P]) -> View[P]:
    """A page of a note that is unknown, deleted or somebody else's is not there."""

    @wraps(view)
    def guarded(request: SignedInRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        try:
            return view(request, *args, **kwargs)
        except NotFound as error:
            raise Http404(error.message) from error

    return guarded


@require_GET
@own_note
def card(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """The card of a note, for reading."""
    return _card(request, selectors.memory_get(request.user.pk, parse_id(memory_id)))


@require_http_methods(["GET", "POST"])
@own_note
def edit(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """The form in the card's place; a POST saves and answers with the card, or 422 and the form."""
    key = parse_id(memory_id)
    note = selectors.memory_get(request.user.pk, key)
    if request.method != "POST":
        return render(request, "memory/_edit.html", {"form": NoteForm.of(note), "note": note})
    form = NoteForm(request.POST, prefix=str(note.pk))
    if form.is_valid():
        try:
            services.memory_update(user_id=request.user.pk, memory_id=key, **form.changes())
        except REFUSALS as error:
            form.add_failure(error)
        else:
            return _changed(request, selectors.memory_get(request.user.pk, key))
    return render(request, "memory/_edit.html", {"form": form, "note": note}, status=422)


@require_POST
@own_note
def delete(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Delete a note; answers with what is left of its card: the way back."""
    note = services.memory_delete(user_id=request.user.pk, memory_id=parse_id(memory_id))
    return _changed(request, note, "memory/_deleted.html")


@require_POST
@own_note
def archive(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Put a note away."""
    key = parse_id(memory_id)
    services.memory_archive(user_id=request.user.pk, memory_id=key)
    return _changed(request, selectors.memory_get(request.user.pk, key))


@require_POST
@own_note
def restore(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Bring back a deleted, archived or replaced note."""
    key = parse_id(memory_id)
    try:
        services.memory_restore(user_id=request.user.pk, memory_id=key)
    except REFUSALS as error:
        return _history(request, selectors.memory_get(request.user.pk, key), error.message)
    return _changed(request, selectors.memory_get(request.user.pk, key))


@require_GET
@own_note
def history(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Shows the note's versions, each with a way back to it."""
    key = parse_id(memory_id)
    note = selectors.memory_get(request.user.pk, key)
    return _history(request, note)


@require_POST
@own_note
def undo(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Go back to an earlier version."""
    key = parse_id(memory_id)
    version = request.POST.get("version", "")
    number = int(version) if version.isdecimal() and len(version) < 9 else 0
    try:
        services.memory_undo(user_id=request.user.pk, memory_id=key, version=number)
    except REFUSALS as error:
        return _history(request, selectors.memory_get(request.user.pk, key), error.message)
    return _changed(request, selectors.memory_get(request.user.pk, key))


def _history(request: SignedInRequest, note: Memory, problem: str = "") -> HttpResponse:
    steps = steps_of(selectors.note_history(request.user.pk, note.pk), addressed)
    context = {"note": note, "steps": steps, "problem": problem}
    return render(request, "memory/_history.html", context, status=422 if problem else 200)


def _card(request: SignedInRequest, note: Memory, template: str = "memory/_card.html") -> HttpResponse:
    (row,) = rows_of(request.user.pk, [(note, None)])
    context: dict[str, Any] = {"row": row, "note": note, "focus": True}
    return render(request, template, context)


def _changed(request: SignedInRequest, note: Memory, template: str = "memory/_card.html") -> HttpResponse:
    """After a change: the fragment, or without HTMX the page again."""
    return _card(request, note, template) if request.headers.get("HX-Request") else redirect("memory:list")
