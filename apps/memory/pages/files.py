"""The files page: list, read, write, edit, delete with undo, history."""

from uuid import UUID

from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.errors import REFUSALS
from apps.core.http.htmx import is_fragment
from apps.core.ids import parse_id
from apps.memory.files.selectors import file_get, file_history, files_in
from apps.memory.files.services import file_delete, file_restore, file_undo, file_update, file_write
from apps.memory.models import MemoryFile
from apps.memory.notes.history import steps_of

from .done import done_last, done_next, own_note, version_asked
from .forms import FileForm

PAGE_SIZE = 50
DELETED_SHOWN = 20


@require_GET
@own_note
def files(request: SignedInRequest) -> HttpResponse:
    """The page: the files by path, and those that can be brought back; `?file=` shows one with its text."""
    return _page(request, FileForm(prefix="new"))


@require_POST
def create(request: SignedInRequest) -> HttpResponse:
    """Add a file and show the page again; 422 with what is wrong. It overwrites nothing."""
    form = FileForm(request.POST, prefix="new")
    if form.accepted(lambda: file_write(user_id=request.user.pk, new=True, **form.changes())):
        done_next(request, f"Saved {form.made.path}.")
        return redirect("memory:files")
    return _page(request, form, status=422)


def _page(request: SignedInRequest, form: FileForm, status: int = 200) -> HttpResponse:
    user_id = request.user.pk
    opened, files = request.GET.get("file"), files_in(user_id)
    files = files.filter(pk=parse_id(opened)) if opened else files.defer("content")
    page = Paginator(files, PAGE_SIZE).get_page(request.GET.get("page"))
    deleted = MemoryFile.objects.restorable(user_id).defer("content").order_by("-deleted_at")
    context = {
        "nav": "memory",
        "page": page,
        "opened": bool(opened),
        "deleted": deleted[:DELETED_SHOWN],
        "form": form,
        **done_last(request),
    }
    return render(request, "memory/files/page.html", context, status=status)


@require_GET
@own_note
def card(request: SignedInRequest, file_id: UUID) -> HttpResponse:
    """The file as a line of the list."""
    return _card(request, _present(request, file_id))


@require_GET
@own_note
def read(request: SignedInRequest, file_id: UUID) -> HttpResponse:
    """The file with its text."""
    return _card(request, _present(request, file_id), opened=True)


@require_http_methods(["GET", "POST"])
@own_note
def edit(request: SignedInRequest, file_id: UUID) -> HttpResponse:
    """The form in the card's place; a POST saves and answers with the card, or 422 and the form."""
    file = _present(request, file_id)
    if request.method != "POST":
        return render(request, "memory/files/_edit.html", {"form": FileForm.of(file), "file": file})
    form = FileForm.of(file, request.POST)
    if form.accepted(
        lambda: file_update(user_id=request.user.pk, file_id=file_id, **form.changes()), REFUSALS
    ):
        return _changed(request, form.made, opened=True)
    return render(request, "memory/files/_edit.html", {"form": form, "file": file}, status=422)


@require_POST
@own_note
def delete(request: SignedInRequest, file_id: UUID) -> HttpResponse:
    """Delete a file; answers with what is left of its card: the way back."""
    file = _present(request, file_id)
    file_delete(user_id=request.user.pk, path=file.path)
    if not is_fragment(request):
        return redirect("memory:files")
    return render(request, "memory/files/_deleted.html", {"file": file, "fresh": True})


@require_POST
@own_note
def restore(request: SignedInRequest, file_id: UUID) -> HttpResponse:
    """Bring back a deleted file."""
    try:
        return _changed(request, file_restore(user_id=request.user.pk, file_id=file_id))
    except REFUSALS as error:
        context = {"file": file_get(request.user.pk, file_id), "problem": error.message}
        return render(request, "memory/files/_deleted.html", context, status=422)


@require_GET
@own_note
def history(request: SignedInRequest, file_id: UUID) -> HttpResponse:
    """Shows the file's versions, each with a way back to it."""
    return _history(request, _present(request, file_id))


@require_POST
@own_note
def undo(request: SignedInRequest, file_id: UUID) -> HttpResponse:
    """Go back to an earlier version."""
    file = _present(request, file_id)
    try:
        changed = file_undo(user_id=request.user.pk, file_id=file_id, version=version_asked(request))
    except REFUSALS as error:
        return _history(request, file, error.message)
    return _changed(request, changed, opened=True)


def _present(request: SignedInRequest, file_id: UUID) -> MemoryFile:
    file = file_get(request.user.pk, file_id)
    if file.deleted_at is not None:
        raise Http404("This file was deleted.")
    return file


def _card(request: SignedInRequest, file: MemoryFile, *, opened: bool = False) -> HttpResponse:
    return render(request, "memory/files/_card.html", {"file": file, "opened": opened})


def _history(request: SignedInRequest, file: MemoryFile, problem: str = "") -> HttpResponse:
    steps = steps_of(file_history(request.user.pk, file.pk))
    context = {"file": file, "steps": steps, "problem": problem}
    return render(request, "memory/files/_history.html", context, status=422 if problem else 200)


def _changed(request: SignedInRequest, file: MemoryFile, *, opened: bool = False) -> HttpResponse:
    """After a change: the card, or without HTMX the page again."""
    return _card(request, file, opened=opened) if is_fragment(request) else redirect("memory:files")
