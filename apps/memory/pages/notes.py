"""The memories page: browse, filter, search, add; one note as a fragment; passages that are still to be read."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.errors import REFUSALS, IzzyError
from apps.core.ids import parse_id
from apps.memory import selectors
from apps.memory.addressing import addressed
from apps.memory.capture.selectors import capture_status, given_up
from apps.memory.capture.windows import windows_retry
from apps.memory.models import Memory, MemoryEdge, Origin, Status
from apps.memory.notes.changes import memory_archive, memory_delete, memory_update
from apps.memory.notes.creation import memory_create
from apps.memory.notes.history import steps_of
from apps.memory.notes.revisions import Provenance
from apps.memory.notes.undoing import memory_restore, memory_undo
from apps.memory.recall.searching import notes_search
from apps.memory.selectors import NoteFilter
from apps.search.documents import Hit

from .done import done_last, own_note
from .forms import FilterForm, NoteForm

PAGE_SIZE = 30
FOUND_AT_MOST = 60
LEAST_SCORE = 0.005
"""A search leaves out what is below: it shows as 0 %."""


@dataclass(frozen=True, slots=True)
class Row:
    """A note in the list, in a search how it was found, and the open contradiction it is part of."""

    note: Memory
    hit: Hit | None = None
    against: MemoryEdge | None = None


def rows_of(user_id: UUID, found: Sequence[tuple[Memory, Hit | None]]) -> list[Row]:
    """Notes as rows, each with the first contradiction that is open about it."""
    against: dict[UUID, MemoryEdge] = {}
    keys = [note.pk for note, _ in found]
    for edge in selectors.open_contradictions(user_id, of=keys):
        against.setdefault(edge.source_id, edge)
        against.setdefault(edge.target_id, edge)
    return [Row(note, hit, against.get(note.pk)) for note, hit in found]


@require_GET
def memories(request: SignedInRequest) -> HttpResponse:
    """The page, or for HTMX its list alone."""
    filters = FilterForm(request.GET)
    wanted = _wanted(filters)
    context: dict[str, Any] = {
        "filters": filters,
        "narrowed": filters.narrowed(),
        "nav": "memory",
        "form": NoteForm(prefix="new"),
    }
    try:
        context |= _list(request, wanted)
    except IzzyError as error:
        context["problem"] = error.message
    if request.headers.get("HX-Request"):
        return render(request, "memory/_list.html", context)
    context |= capture_context(request.user.pk) | done_last(request)
    context["empty"] = not Memory.objects.for_user(request.user).exists()
    return render(request, "memory/list.html", context)


@require_http_methods(["POST"])
def create(request: SignedInRequest) -> HttpResponse:
    """Add a note; answers with its card, or 422 and the form with what is wrong."""
    form = NoteForm(request.POST, prefix="new")
    note = None
    if form.is_valid():
        values = form.changes()
        try:
            note = memory_create(user_id=request.user.pk, provenance=Provenance(origin=Origin.USER), **values)
        except IzzyError as error:
            form.add_failure(error)
    if not request.headers.get("HX-Request"):
        return redirect("memory:list")
    if note is None:
        return render(request, "memory/_new.html", {"form": form}, status=422)
    return render(request, "memory/_created.html", {"row": Row(note), "form": NoteForm(prefix="new")})


def _wanted(filters: FilterForm) -> NoteFilter:
    """The filter; a value that the form does not know counts as not given."""
    filters.is_valid()
    given = {name: value for name, value in filters.cleaned_data.items() if value}
    given.setdefault("status", str(Status.ACTIVE))
    return NoteFilter(**given)


def _list(request: SignedInRequest, wanted: NoteFilter) -> dict[str, Any]:
    user_id = request.user.pk
    shown = request.GET.copy()
    shown.pop("page", None)
    common = {"query_string": shown.urlencode(), "status": wanted.status}
    if wanted.q and wanted.status == Status.ACTIVE:
        return {**common, "rows": _found(user_id, wanted), "filtered": True}
    page = Paginator(selectors.memories_list(user_id, wanted), PAGE_SIZE).get_page(request.GET.get("page"))
    return {
        **common,
        "rows": rows_of(user_id, [(note, None) for note in page]),
        "page": page,
        "filtered": any(shown.values()),
    }


def _found(user_id: UUID, wanted: NoteFilter) -> list[Row]:
    found = notes_search(user_id, wanted.q, wanted=wanted, top_k=FOUND_AT_MOST, threshold=LEAST_SCORE)
    return rows_of(user_id, [(note, hit) for hit, note in found])


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
            memory_update(user_id=request.user.pk, memory_id=key, **form.changes())
        except REFUSALS as error:
            form.add_failure(error)
        else:
            return _changed(request, selectors.memory_get(request.user.pk, key))
    return render(request, "memory/_edit.html", {"form": form, "note": note}, status=422)


@require_POST
@own_note
def delete(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Delete a note; answers with what is left of its card: the way back."""
    note = memory_delete(user_id=request.user.pk, memory_id=parse_id(memory_id))
    return _changed(request, note, "memory/_deleted.html")


@require_POST
@own_note
def archive(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Put a note away."""
    key = parse_id(memory_id)
    memory_archive(user_id=request.user.pk, memory_id=key)
    return _changed(request, selectors.memory_get(request.user.pk, key))


@require_POST
@own_note
def restore(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Bring back a deleted, archived or replaced note."""
    key = parse_id(memory_id)
    try:
        memory_restore(user_id=request.user.pk, memory_id=key)
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
        memory_undo(user_id=request.user.pk, memory_id=key, version=number)
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
