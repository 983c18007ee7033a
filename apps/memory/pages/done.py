"""One line that says what was done to what, with the way back; and what all pages of notes share."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.text import Truncator
from django.views.decorators.http import require_POST

from apps.accounts.access import SignedInRequest
from apps.core.addressing import addressed
from apps.core.errors import IzzyError, NotFound
from apps.core.http.htmx import is_fragment
from apps.core.ids import parse_id
from apps.memory.models import Memory
from apps.memory.notes.undoing import steps_back, steps_take, versions_of

KEPT = "memory_done"
NAMED = 2
NAMED_CHARS = 60
UNDONE = "Undone."


def own_note(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Hands the ids of an address to a page; one of a row that is unknown, deleted or somebody else's is not there."""

    @wraps(view)
    def guarded(request: SignedInRequest, **ids: str) -> HttpResponse:
        try:
            return view(request, **{name: parse_id(value) for name, value in ids.items()})
        except NotFound as error:
            raise Http404(error.message) from error

    return guarded


def version_asked(request: SignedInRequest) -> int:
    """The version to go back to; 0, which no row ever had, for what is no number."""
    version = request.POST.get("version", "")
    return int(version) if version.isdecimal() and len(version) < 9 else 0


def named(user_id: UUID, memory_ids: Sequence[UUID]) -> str:
    """The notes as a line names them: their words, the first NAMED of several."""
    notes = Memory.objects.with_deleted(user_id).in_bulk(memory_ids)
    texts = [" ".join(addressed(notes[key].content).split()) for key in memory_ids if key in notes]
    words = [f"“{Truncator(text).chars(NAMED_CHARS)}”" for text in texts]
    more = len(memory_ids) - NAMED
    if more <= 0:
        return " and ".join(words)
    return f"{len(memory_ids)} memories: {', '.join(words[:NAMED])} and {more} more"


def with_steps(
    user_id: UUID, memory_ids: Sequence[UUID], work: Callable[[], Any]
) -> tuple[Any, list[str]]:
    """The work's result, and the steps that undo what it did to these notes."""
    before = versions_of(user_id, memory_ids)
    return work(), steps_back(user_id, before)


def done_next(
    request: SignedInRequest, said: str, steps: Sequence[str] = (), *, failed: bool = False
) -> None:
    """Keeps the line for the next page of the memory."""
    request.session[KEPT] = {"said": said, "steps": list(steps), "failed": failed}


def done_last(request: SignedInRequest) -> dict[str, Any]:
    """The line that was kept, once: what `memory/_done.html` shows."""
    return {"done": request.session.pop(KEPT)} if KEPT in request.session else {}


def list_url(query: str) -> str:
    """The memories page with the filters that were set."""
    return f"{reverse('memory:list')}?{query}" if query else reverse("memory:list")


def page_url(request: SignedInRequest) -> str:
    """The page that a form stood on, as it says itself (`page`, `back`): a note's own, the review, or the list as it was filtered."""
    page, back = request.POST.get("page", ""), request.POST.get("back", "")[:2000]
    if page == "note":
        return reverse("memory:note", args=[parse_id(back)])
    return reverse("memory:review") if page == "review" else list_url(back)


@require_POST
@own_note
def take_back(request: SignedInRequest) -> HttpResponse:
    """Undo what a line says was done (`step`), and go back to the page it stood on."""
    try:
        steps_take(user_id=request.user.pk, steps=request.POST.getlist("step"))
    except IzzyError as error:
        done_next(request, error.message, failed=True)
    else:
        done_next(request, UNDONE)
    url = page_url(request)
    return HttpResponse(headers={"HX-Redirect": url}) if is_fragment(request) else redirect(url)
