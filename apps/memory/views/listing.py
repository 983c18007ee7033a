"""The memories page: browse, filter, search, add."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from apps.accounts.access import SignedInRequest
from apps.core.errors import IzzyError
from apps.memory import selectors, services
from apps.memory.forms import FilterForm, NoteForm
from apps.memory.models import Memory, MemoryEdge, Origin, Status
from apps.memory.recall.searching import notes_search
from apps.memory.selectors import NoteFilter
from apps.memory.services import Provenance
from apps.memory.views.passages import capture_context
from apps.search.documents import Hit

from .taking_back import done_last

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
            note = services.memory_create(
                user_id=request.user.pk, provenance=Provenance(origin=Origin.USER), **values
            )
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
