"""The review page: what waits for the user's word, and what cannot both be true."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.errors import REFUSALS, IzzyError, NotFound
from apps.core.ids import parse_id
from apps.memory import selectors, services
from apps.memory.addressing import addressed
from apps.memory.history.diffs import text_diff
from apps.memory.models import Memory, Status
from apps.memory.review import services as review
from apps.memory.review.selectors import Waiting, pending_get, review_queue, waiting_of

from .cards import own_note

PAGE_SIZE = 20
CONTRADICTIONS_SHOWN = 20
WORDS = {"accept": "Accepted", "reject": "Rejected"}


@require_http_methods(["GET", "POST"])
def queue(request: SignedInRequest) -> HttpResponse:
    """The page; a POST accepts or rejects what is ticked and shows it again."""
    if request.method != "POST":
        return _page(request)
    decision = request.POST.get("decision", "")
    decide = {"accept": review.review_accept_all, "reject": review.review_reject_all}.get(decision)
    if decide is None:
        return _page(request, problem="Choose what to do with the notes.", status=422)
    try:
        ids = [parse_id(value) for value in request.POST.getlist("notes")]
        done = decide(user_id=request.user.pk, memory_ids=ids)
    except NotFound:
        return _page(request, problem="One of these notes is no longer there.", status=422)
    except IzzyError as error:
        return _page(request, problem=error.message, status=422)
    said = f"{WORDS[decision]}: {done.count}."
    missed = f" {len(done.failed)} no longer waited." if done.failed else ""
    return _page(request, said=said + missed)


@require_GET
@own_note
def card(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """The card of a note that waits."""
    return _card(request, parse_id(memory_id))


@require_http_methods(["GET", "POST"])
@own_note
def accept(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """GET: the form to change the text before; POST: do what the note proposes, with that text where it is given."""
    key = parse_id(memory_id)
    if request.method != "POST":
        return _card(request, key, form="edit")
    text = request.POST.get("content")
    try:
        note = review.review_accept(
            user_id=request.user.pk, memory_id=key, content=None if text is None else _clean(text)
        )
    except REFUSALS as error:
        return _failed(request, key, error, form="edit" if text is not None else "", text=text)
    return _decided(request, note, "Accepted." if note.pk == key else "Accepted: the note is changed.")


@require_http_methods(["GET", "POST"])
@own_note
def merge(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """GET: the form with both texts; POST: let the note that stands against it take it in."""
    key = parse_id(memory_id)
    if request.method != "POST":
        return _card(request, key, form="merge")
    text = request.POST.get("content", "")
    try:
        note = review.review_merge(
            user_id=request.user.pk,
            memory_id=key,
            into_id=parse_id(request.POST.get("into", "")),
            content=_clean(text),
        )
    except REFUSALS as error:
        return _failed(request, key, error, form="merge", text=text)
    return _decided(request, note, "Merged into the other note.")


@require_POST
@own_note
def reject(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Turn a note down; answers with the way back."""
    key = parse_id(memory_id)
    try:
        note = review.review_reject(user_id=request.user.pk, memory_id=key)
    except REFUSALS as error:
        return _failed(request, key, error)
    return _decided(request, note, "Rejected. It can be brought back for 30 days.", undo=True)


@require_POST
@own_note
def put_back(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Bring a rejected note back into the queue."""
    key = parse_id(memory_id)
    note = services.memory_restore(user_id=request.user.pk, memory_id=key)
    if note.status != Status.PENDING:
        return redirect("memory:review")
    return _card(request, key, badges_too=True)


@require_POST
@own_note
def settle(request: SignedInRequest, edge_id: str) -> HttpResponse:
    """Say which of two notes is true, or (`keep` empty) that both are."""
    keep = request.POST.get("keep", "")
    services.contradiction_resolve(
        user_id=request.user.pk, edge_id=parse_id(edge_id), keep_id=parse_id(keep) if keep else None
    )
    if not request.headers.get("HX-Request"):
        return redirect("memory:review")
    if reverse("memory:review") not in request.headers.get("HX-Current-URL", ""):
        return HttpResponse(headers={"HX-Redirect": reverse("memory:list")})
    text = "Settled: the other is kept as what held before." if keep else "Both are kept."
    return render(request, "memory/review/_settled.html", {"text": text})


def _page(request: SignedInRequest, *, said: str = "", problem: str = "", status: int = 200) -> HttpResponse:
    user_id = request.user.pk
    page = Paginator(review_queue(user_id), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "nav": "memory",
        "page": page,
        "items": _shown(waiting_of(user_id, list(page))),
        "contradictions": list(selectors.open_contradictions(user_id)[:CONTRADICTIONS_SHOWN]),
        "said": said,
        "problem": problem,
    }
    return render(request, "memory/review/page.html", context, status=status)


def _shown(items: list[Waiting]) -> list[Waiting]:
    """With the differences between the texts as the page shows them."""
    return [
        replace(item, diff=tuple(text_diff(addressed(item.other.content), addressed(item.note.content))))
        if item.other and item.diff
        else item
        for item in items
    ]


def _card(request: SignedInRequest, key: UUID, **more: Any) -> HttpResponse:
    note = selectors.memory_get(request.user.pk, key)
    if note.status != Status.PENDING:
        return redirect("memory:review")
    (item,) = _shown(waiting_of(request.user.pk, [note]))
    template = "memory/review/_card.html" if not more.get("form") else "memory/review/_form.html"
    return render(request, template, {"item": item, "focus": True, **more})


def _failed(
    request: SignedInRequest, key: UUID, error: IzzyError, *, form: str = "", text: str | None = None
) -> HttpResponse:
    """What went wrong, beside the card; where the note does not wait any more, that."""
    try:
        note = pending_get(request.user.pk, key)
    except IzzyError:
        context = {"text": error.message, "note_id": key}
        return render(request, "memory/review/_decided.html", context, status=422)
    (item,) = _shown(waiting_of(request.user.pk, [note]))
    template = "memory/review/_form.html" if form else "memory/review/_card.html"
    context = {"item": item, "form": form, "text": text, "problem": error.message}
    return render(request, template, context, status=422)


def _decided(request: SignedInRequest, note: Memory, text: str, *, undo: bool = False) -> HttpResponse:
    if not request.headers.get("HX-Request"):
        return redirect("memory:review")
    context = {"text": text, "note": note, "undo": undo}
    return render(request, "memory/review/_decided.html", context)


def _clean(text: str) -> str:
    """A text with the line breaks of notes rather than those of browsers."""
    return text.replace("\r\n", "\n")
