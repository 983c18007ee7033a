"""The memories page: browse, filter, search, add; one note as a fragment; passages that are still to be read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts.access import SignedInRequest
from apps.accounts.selectors import is_put_away, preferences_for
from apps.core.addressing import addressed
from apps.core.errors import REFUSALS, IzzyError
from apps.core.http.htmx import is_fragment
from apps.memory.capture.selectors import capture_status, given_up
from apps.memory.capture.windows import windows_retry
from apps.memory.models import Kind, Memory, MemoryEdge, OccasionsBy, Status
from apps.memory.notes.as_of import texts_at
from apps.memory.notes.changes import memory_archive, memory_delete, memory_update
from apps.memory.notes.creation import memory_create
from apps.memory.notes.history import steps_of
from apps.memory.notes.selectors import (
    NoteFilter,
    memories_list,
    memory_get,
    note_history,
    open_contradictions,
)
from apps.memory.notes.undoing import memory_restore, memory_undo
from apps.memory.recall.searching import notes_search
from apps.memory.similarity import NOTES
from apps.search.causes import explained
from apps.search.documents import Hit

from .done import done_last, own_note, version_asked
from .forms import FilterForm, NewNoteForm, NoteForm
from .paging import number_asked, page_of

PAGE_SIZE = 30
FOUND_SIZE, FOUND_PAGES = 20, 6
"""Results on a page of a search, and its pages: the first answers are the ones that are read."""
OCCASIONS_SAID = {
    OccasionsBy.NONE: "Izzy looks for them anew.",
    OccasionsBy.MODEL: "Made anew for the new text.",
    OccasionsBy.RULES: "Made anew for the new text.",
    OccasionsBy.USER: "Yours stay: look whether they still fit.",
}
"""The sentence about a note's occasions where its text was changed, by whose they are then."""
LEAST_SCORE = 0.005
"""A search leaves out what is below: it shows as 0 %."""


@dataclass(frozen=True, slots=True)
class Row:
    """A note in the list, in a search how it was found, and the open contradiction it is part of."""

    note: Memory
    hit: Hit | None = None
    against: MemoryEdge | None = None
    then: str = ""  # what it said at the time that was asked about, where that was something else

    @property
    def text(self) -> str:
        """The words to show."""
        return self.then or self.note.content


def rows_of(user_id: UUID, found: Sequence[tuple[Memory, Hit | None]]) -> list[Row]:
    """Notes as rows, each with the first contradiction that is open about it."""
    against: dict[UUID, MemoryEdge] = {}
    for edge in open_contradictions(user_id, of=[note.pk for note, _ in found]):
        against.setdefault(edge.source_id, edge)
        against.setdefault(edge.target_id, edge)
    return [Row(note, hit, against.get(note.pk)) for note, hit in found]


@require_GET
def memories(request: SignedInRequest) -> HttpResponse:
    """The page, or for HTMX its list alone."""
    context = _found(request)
    if is_fragment(request):
        answer = render(request, "memory/_found.html", context)
        answer["HX-Push-Url"] = "?".join(filter(None, (request.path, _given(request).urlencode())))
        return answer
    return _page(request, context | done_last(request), NewNoteForm(prefix="new"))


def _page(
    request: SignedInRequest, found: Mapping[str, Any], form: NewNoteForm, status: int = 200
) -> HttpResponse:
    context = {
        **found,
        **_capture_context(request.user.pk),
        "nav": "memory",
        "form": form,
        "empty": not Memory.objects.for_user(request.user).exists(),
    }
    return render(request, "memory/list.html", context, status=status)


def _found(request: SignedInRequest) -> dict[str, Any]:
    """The filters that are given, and the memories that they let through."""
    filters = FilterForm(request.GET)
    context: dict[str, Any] = {"filters": filters, "narrowed": filters.narrowed()}
    # A value that the form does not know counts as not given, and the page says so.
    if wrong := filters.non_field_errors():
        context["problem"] = wrong[0]
    else:
        try:
            context |= _list(request, NoteFilter(**filters.wanted()))
        except IzzyError as error:
            context["problem"] = error.message
    return context


def _list(request: SignedInRequest, wanted: NoteFilter) -> dict[str, Any]:
    user_id = request.user.pk
    shown = _given(request)
    shown.pop("page", None)
    common = {
        "query_string": shown.urlencode(),
        "kept": list(shown.items()),
        "kinds": Kind.choices,
        "status": wanted.status,
        "as_of": wanted.as_of,
    }
    if wanted.q and (wanted.as_of or wanted.status == Status.ACTIVE):
        moment = wanted.as_of if isinstance(wanted.as_of, datetime) else None
        number = min(max(number_asked(request.GET.get("page")), 1), FOUND_PAGES)
        found = notes_search(
            user_id,
            wanted.q,
            wanted=wanted,
            top_k=number * FOUND_SIZE + 1,
            scope=replace(NOTES, as_of=moment),
            threshold=LEAST_SCORE,
        )
        more = len(found) > number * FOUND_SIZE and number < FOUND_PAGES
        found = found[(number - 1) * FOUND_SIZE : number * FOUND_SIZE]
        notes, hits = [note for _, note in found], explained(wanted.q, [hit for hit, _ in found])
        rows = _then(user_id, rows_of(user_id, list(zip(notes, hits, strict=True))), wanted)
        ways = {"found_before": number - 1, "found_next": number + 1 if more else 0}
        return {**common, **ways, "rows": rows, "filtered": True}
    page = page_of(memories_list(user_id, wanted), PAGE_SIZE, request.GET.get("page"))
    rows = _then(user_id, rows_of(user_id, [(note, None) for note in page]), wanted)
    numbers = page.paginator.get_elided_page_range(page.number, on_each_side=1, on_ends=1)
    return {
        **common,
        "rows": rows,
        "page": page,
        "numbers": list(numbers),
        "filtered": bool(shown),
        "unnarrowed": list(shown) == ["status"],
    }


def _given(request: SignedInRequest) -> QueryDict:
    """An address's parts but the empty ones; of a part that stands there twice the last, which is the one that counts."""
    given = QueryDict(mutable=True)
    for name in request.GET:
        if value := request.GET.get(name):
            given[name] = value
    return given


def _then(user_id: UUID, rows: list[Row], wanted: NoteFilter) -> list[Row]:
    """The rows with what their notes said at the time that is asked about; what they contradict is of today."""
    if not isinstance(wanted.as_of, datetime):
        return rows
    former = texts_at(user_id, [row.note.pk for row in rows], wanted.as_of)
    return [replace(row, then=former.get(row.note.pk, ""), against=None) for row in rows]


@require_http_methods(["POST"])
def create(request: SignedInRequest) -> HttpResponse:
    """Add a note; answers with its card, or 422 and the form with what is wrong."""
    form = NewNoteForm(request.POST, prefix="new")
    saved = form.accepted(lambda: _saved(request.user.pk, **form.changes()))
    if not is_fragment(request):
        if saved:
            return redirect("memory:list")
        return _page(request, _found(request), form, status=422)
    if not saved:
        return render(request, "memory/_new.html", {"form": form}, status=422)
    context = {"row": Row(form.made), "form": NewNoteForm(prefix="new")}
    return render(request, "memory/_created.html", context)


def _saved(user_id: UUID, key: UUID | None = None, **fields: Any) -> Memory:
    """The new note. Where the same text was saved under that key before it is that one: its answer was lost, and it was sent again."""
    taken = Memory.objects.unscoped().filter(pk=key).first() if key else None
    if taken is None:
        return memory_create(user_id=user_id, key=key, **fields)
    if (taken.user_id, taken.content, taken.status) == (user_id, fields["content"], Status.ACTIVE):
        return memory_update(user_id=user_id, memory_id=taken.pk, **fields)
    return memory_create(user_id=user_id, **fields)


@require_GET
@own_note
def card(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """The card of a note, for reading."""
    return _card(request, memory_get(request.user.pk, memory_id))


@require_http_methods(["GET", "POST"])
@own_note
def edit(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """The form in the card's place; a POST saves and answers with the card, or 422 and the form."""
    note = memory_get(request.user.pk, memory_id)
    if request.method != "POST":
        return render(request, "memory/_edit.html", {"form": NoteForm.of(note), "note": note})
    form = NoteForm.of(note, request.POST)
    if form.accepted(
        lambda: memory_update(user_id=request.user.pk, memory_id=memory_id, **form.changes()), REFUSALS
    ):
        anew = form.made.content != note.content and "occasions" not in form.changes()
        said = OCCASIONS_SAID[OccasionsBy(form.made.occasions_by)] if anew else ""
        return _changed(request, memory_id, occasions_said=said)
    return render(request, "memory/_edit.html", {"form": form, "note": note}, status=422)


@require_POST
@own_note
def delete(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Delete a note; answers with what is left of its card: the way back."""
    note = memory_delete(user_id=request.user.pk, memory_id=memory_id)
    return (
        _card(request, note, "memory/_deleted.html") if is_fragment(request) else redirect("memory:list")
    )


@require_POST
@own_note
def archive(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Put a note away."""
    memory_archive(user_id=request.user.pk, memory_id=memory_id)
    return _changed(request, memory_id)


@require_POST
@own_note
def restore(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Bring back a deleted, archived or replaced note."""
    try:
        memory_restore(user_id=request.user.pk, memory_id=memory_id)
    except REFUSALS as error:
        return _history(request, memory_id, error.message)
    return _changed(request, memory_id)


@require_GET
@own_note
def history(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Shows the note's versions, each with a way back to it."""
    return _history(request, memory_id)


@require_POST
@own_note
def undo(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Go back to an earlier version."""
    try:
        memory_undo(user_id=request.user.pk, memory_id=memory_id, version=version_asked(request))
    except REFUSALS as error:
        return _history(request, memory_id, error.message)
    return _changed(request, memory_id)


def _history(request: SignedInRequest, memory_id: UUID, problem: str = "") -> HttpResponse:
    note = memory_get(request.user.pk, memory_id)
    steps = steps_of(note_history(request.user.pk, memory_id), addressed)
    context = {"note": note, "steps": steps, "problem": problem}
    return render(request, "memory/_history.html", context, status=422 if problem else 200)


def _card(
    request: SignedInRequest, note: Memory, template: str = "memory/_card.html", **said: str
) -> HttpResponse:
    (row,) = rows_of(request.user.pk, [(note, None)])
    return render(request, template, {"row": row, "note": note, "focus": True, **said})


def _changed(request: SignedInRequest, memory_id: UUID, **said: str) -> HttpResponse:
    """After a change: the card, with what is said of it, or without HTMX the page again."""
    note = memory_get(request.user.pk, memory_id)
    return _card(request, note, **said) if is_fragment(request) else redirect("memory:list")


@require_POST
def retry(request: SignedInRequest) -> HttpResponse:
    """Passages that were given up are read once more."""
    count = windows_retry(user_id=request.user.pk)
    parts = "part is" if count == 1 else "parts are"
    said = f"{count} {parts} read once more." if count else "Nothing was left to try again."
    if not is_fragment(request):
        messages.success(request, said)
        return redirect("memory:list")
    return render(request, "memory/_capture.html", _capture_context(request.user.pk) | {"said": said})


def _capture_context(user_id: UUID) -> dict[str, Any]:
    """Context of `memory/_capture.html`."""
    status = capture_status(user_id)
    away = is_put_away(preferences_for(user_id), "passages")
    waits = {"capture": status, "put_away": away}
    return waits | {"given_up": given_up(user_id) if status.gave_up else []}
