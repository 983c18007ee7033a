"""Merging notes that were ticked on the memories page."""

from functools import partial
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from apps.accounts.access import SignedInRequest
from apps.core.errors import REFUSALS, NotFound
from apps.core.ids import parse_id
from apps.memory import selectors, services
from apps.memory.models import Memory

from .cards import own_note
from .taking_back import done_next, named, with_steps


@require_http_methods(["GET", "POST"])
@own_note
def merge(request: SignedInRequest) -> HttpResponse:
    """GET `?notes=…&notes=…`: the form with their text; POST: one note of them."""
    given = request.POST if request.method == "POST" else request.GET
    ids = list(dict.fromkeys(map(parse_id, given.getlist("notes"))))
    notes = _notes(request.user.pk, ids)
    text = "\n".join(note.content for note in notes)
    if request.method != "POST":
        problem = "" if len(notes) > 1 else "Tick two or more notes on the memories page first."
        return _form(request, notes, text, problem)
    content = request.POST.get("content", text).replace("\r\n", "\n")
    try:
        into = parse_id(request.POST.get("into") or (ids[0] if ids else ""))
        merge_them = partial(
            services.memory_merge,
            user_id=request.user.pk,
            into_id=into,
            from_ids=[key for key in ids if key != into],
            content=content,
        )
        said = named(request.user.pk, ids)
        _, steps = with_steps(request.user.pk, ids, merge_them)
    except REFUSALS as error:
        return _form(request, notes, content, error.message, status=422)
    done_next(request, f"Merged into one: {said}.", steps)
    return redirect("memory:list")


def _notes(user_id: UUID, ids: list[UUID]) -> list[Memory]:
    found = selectors.memories_by_id(user_id, ids[: services.MAX_MERGED + 1])
    if len(found) < len(ids):
        raise NotFound("One of these notes is no longer there.")
    return [found[key] for key in ids]


def _form(
    request: SignedInRequest, notes: list[Memory], text: str, problem: str, status: int = 200
) -> HttpResponse:
    context = {"nav": "memory", "notes": notes, "text": text, "problem": problem}
    return render(request, "memory/merge.html", context, status=status)
