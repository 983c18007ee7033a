"""One line that says what was done to what, with the way back; and what all pages of notes share."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.text import Truncator
from django.views.decorators.http import require_POST

from apps.accounts.access import SignedInRequest
from apps.core.errors import IzzyError, NotFound
from apps.memory.addressing import addressed
from apps.memory.models import Memory
from apps.memory.notes.undoing import steps_back, steps_take, versions_of

KEPT = "memory_done"
NAMED = 2
NAMED_CHARS = 60
UNDONE = "Undone."


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


def named(user_id: UUID, memory_ids: Sequence[UUID]) -> str:
    """The notes as a line names them: their words, the first NAMED of several."""
    notes = Memory.objects.with_deleted(user_id).in_bulk(memory_ids)
    texts = [" ".join(addressed(notes[key].content).split()) for key in memory_ids if key in notes]
    words = [f"“{Truncator(text).chars(NAMED_CHARS)}”" for text in texts]
    more = len(memory_ids) - NAMED
    if more <= 0:
        return " and ".join(words)
    return f"{len(memory_ids)} memories: {', '.join(words[:NAMED])} and {more} more"


def with_steps(user_id: UUID, memory_ids: Sequence[UUID], work: Callable[[], Any]) -> tuple[Any, list[str]]:
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


@require_POST
def take_back(request: SignedInRequest) -> HttpResponse:
    """Undo what a line says was done (`step`), and go back to the page it stood on."""
    try:
        steps_take(user_id=request.user.pk, steps=request.POST.getlist("step"))
    except IzzyError as error:
        done_next(request, error.message, failed=True)
    else:
        done_next(request, UNDONE)
    url = reverse("memory:review") if request.POST.get("page") == "review" else ""
    url = url or list_url(request.POST.get("back", "")[:2000])
    if request.headers.get("HX-Request"):
        return HttpResponse(headers={"HX-Redirect": url})
    return redirect(url)
