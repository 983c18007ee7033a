"""The review page: what waits for the user's word, and what cannot both be true."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
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
from apps.memory import selectors
from apps.memory.addressing import addressed
from apps.memory.models import Memory, MemoryEdge, Proposal, Relation, Status
from apps.memory.notes.history import Piece, text_diff
from apps.memory.notes.joining import contradiction_resolve
from apps.memory.notes.review import (
    pending_get,
    review_accept,
    review_accept_all,
    review_merge,
    review_queue,
    review_reject,
    review_reject_all,
)
from apps.memory.notes.undoing import steps_take, versions_of
from apps.memory.selectors import memories_by_id
from apps.memory.similarity import NOTES, says_the_same
from apps.search.selectors import similar

from .done import done_last, done_next, named, own_note, with_steps

_CANDIDATES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A note that waits, and what stands against it.

    `other` is the note it proposes to change or replace, else the active note that says the same, if any does;
    `similarity` (0 to 1) how alike they are, None where it was not measured. `diff` leads from the other's text to this one's.
    """

    note: Memory
    action: Proposal
    other: Memory | None = None
    similarity: float | None = None
    diff: tuple[Piece, ...] = ()

    @property
    def changes_other(self) -> bool:
        """Whether accepting it changes or replaces the other note."""
        return self.action != Proposal.ADD


def waiting_of(user_id: UUID, notes: Sequence[Memory]) -> list[Waiting]:
    """The notes with what stands against each, in their order."""
    targets = memories_by_id(user_id, [note.proposed_target_id for note in notes if note.proposed_target_id])
    near = {
        note.pk: similar(user_id, note.content, top_k=_CANDIDATES, scope=NOTES)
        for note in notes
        if note.proposed_target_id not in targets
    }
    known = memories_by_id(user_id, {key for found in near.values() for key, _ in found})
    return [
        _proposal(note, targets[note.proposed_target_id])
        if note.proposed_target_id in targets
        else _compared(note, near[note.pk], known)
        for note in notes
    ]


def _proposal(note: Memory, target: Memory) -> Waiting:
    diff = tuple(text_diff(target.content, note.content))
    return Waiting(note=note, action=Proposal(note.proposed_action), other=target, diff=diff)


def _compared(note: Memory, near: Sequence[tuple[UUID, float]], known: Mapping[UUID, Memory]) -> Waiting:
    """A new note beside the active one that says the same, by the rule that capture merges by."""
    for memory_id, similarity in near:
        other = known.get(memory_id)
        if other is None or other.status != Status.ACTIVE:
            continue
        if says_the_same(note.content, other.content, similarity):
            diff = tuple(text_diff(other.content, note.content))
            return Waiting(note=note, action=Proposal.ADD, other=other, similarity=similarity, diff=diff)
    return Waiting(note=note, action=Proposal.ADD)


PAGE_SIZE = 20
CONTRADICTIONS_SHOWN = 20
BOTH = "Both are kept as true."
WORDS = {"accept": "Accepted", "reject": "Rejected"}


@require_http_methods(["GET", "POST"])
def queue(request: SignedInRequest) -> HttpResponse:
    """The page; a POST accepts or rejects what is ticked and shows it again."""
    if request.method != "POST":
        return _page(request)
    decision = request.POST.get("decision", "")
    decide = {"accept": review_accept_all, "reject": review_reject_all}.get(decision)
    if decide is None:
        return _page(request, problem="Choose what to do with the notes.", status=422)
    try:
        ids = [parse_id(value) for value in request.POST.getlist("notes")]
        targets = _concerned(request.user.pk, ids)
        done, steps = with_steps(
            request.user.pk, targets, partial(decide, user_id=request.user.pk, memory_ids=ids)
        )
    except NotFound:
        return _page(request, problem="One of these notes is no longer there.", status=422)
    except IzzyError as error:
        return _page(request, problem=error.message, status=422)
    kept = [key for key in ids if key not in done.failed]
    said = f"{WORDS[decision]} {named(request.user.pk, kept)}." if kept else ""
    missed = f" {len(done.failed)} no longer waited." if done.failed else ""
    done_next(request, (said + missed).strip(), steps, failed=not kept)
    return redirect("memory:review")


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
        work = partial(review_accept, content=None if text is None else _clean(text))
        note, steps = _taken(request, key, work)
    except REFUSALS as error:
        return _failed(request, key, error, form="edit" if text is not None else "", text=text)
    words = "Accepted" if note.pk == key else "Accepted and changed"
    return _decided(request, key, f"{words} {named(request.user.pk, [note.pk])}.", steps)


@require_http_methods(["GET", "POST"])
@own_note
def merge(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """GET: the form with both texts; POST: let the note that stands against it take it in."""
    key = parse_id(memory_id)
    if request.method != "POST":
        return _card(request, key, form="merge")
    text = request.POST.get("content", "")
    try:
        into = parse_id(request.POST.get("into", ""))
        work = partial(review_merge, into_id=into, content=_clean(text))
        note, steps = _taken(request, key, work, into)
    except REFUSALS as error:
        return _failed(request, key, error, form="merge", text=text)
    return _decided(request, key, f"Merged into {named(request.user.pk, [note.pk])}.", steps)


@require_POST
@own_note
def reject(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Turn a note down; answers with the way back."""
    key = parse_id(memory_id)
    try:
        note, steps = _taken(request, key, review_reject)
    except REFUSALS as error:
        return _failed(request, key, error)
    return _decided(request, key, f"Rejected {named(request.user.pk, [note.pk])}.", steps)


@require_POST
@own_note
def put_back(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Undo what was decided (`step`): the note waits again."""
    key = parse_id(memory_id)
    if not versions_of(request.user.pk, [key]):
        raise NotFound("There is no note with this id.")
    try:
        steps_take(user_id=request.user.pk, steps=request.POST.getlist("step"))
    except REFUSALS as error:
        context = {"text": error.message, "key": key}
        return render(request, "memory/review/_decided.html", context, status=422)
    return _card(request, key, badges_too=True)


@require_POST
@own_note
def settle(request: SignedInRequest, edge_id: str) -> HttpResponse:
    """Say which of two notes is true, or (`keep` empty) that both are."""
    keep, user_id = request.POST.get("keep", ""), request.user.pk
    edge = selectors.open_contradictions(user_id).filter(pk=parse_id(edge_id)).first()
    if edge is None:
        raise NotFound("There is no open contradiction with this id.")
    if keep and parse_id(keep) not in {edge.source_id, edge.target_id}:
        raise NotFound("The contradiction is not about this note.")
    linked = MemoryEdge.objects.for_user(user_id).filter(
        source_id=edge.source_id, target_id=edge.target_id, relation=Relation.RELATED
    )
    opposed = f"contradicts {edge.source_id} {edge.target_id} {int(linked.exists())}"
    resolve = partial(
        contradiction_resolve,
        user_id=user_id,
        edge_id=edge.pk,
        keep_id=parse_id(keep) if keep else None,
    )
    _, steps = with_steps(user_id, [edge.source_id, edge.target_id], resolve)
    other = edge.target_id if keep and parse_id(keep) == edge.source_id else edge.source_id
    text = f"Settled: {named(user_id, [other])} is kept as what held before." if keep else BOTH
    steps = steps if keep else [opposed]
    if not request.headers.get("HX-Request"):
        done_next(request, text, steps)
        return redirect("memory:review")
    if reverse("memory:review") not in request.headers.get("HX-Current-URL", ""):
        done_next(request, text, steps)
        return HttpResponse(headers={"HX-Redirect": reverse("memory:list")})
    return render(request, "memory/review/_settled.html", {"text": text, "steps": steps})


def _page(request: SignedInRequest, *, problem: str = "", status: int = 200) -> HttpResponse:
    user_id = request.user.pk
    page = Paginator(review_queue(user_id), PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "nav": "memory",
        "page": page,
        "items": _shown(waiting_of(user_id, list(page))),
        "contradictions": list(selectors.open_contradictions(user_id)[:CONTRADICTIONS_SHOWN]),
        "problem": problem,
        **done_last(request),
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
    """Shows the error by the card, or in its place if the note no longer waits."""
    try:
        note = pending_get(request.user.pk, key)
    except IzzyError:
        context = {"text": error.message, "key": key}
        return render(request, "memory/review/_decided.html", context, status=422)
    (item,) = _shown(waiting_of(request.user.pk, [note]))
    template = "memory/review/_form.html" if form else "memory/review/_card.html"
    context = {"item": item, "form": form, "text": text, "problem": error.message}
    return render(request, template, context, status=422)


def _concerned(user_id: UUID, keys: Sequence[UUID]) -> list[UUID]:
    """The notes that a decision on these may change: they themselves, and those that they propose to change."""
    targets = Memory.objects.owned_by(user_id).filter(pk__in=keys).exclude(proposed_target=None)
    found = list(targets.values_list("proposed_target_id", flat=True))
    replaced_by = Memory.objects.owned_by(user_id).filter(supersedes__in=found).values_list("pk", flat=True)
    return list(dict.fromkeys([*keys, *found, *replaced_by]))


def _taken(
    request: SignedInRequest, key: UUID, work: Callable[..., Memory], *others: UUID
) -> tuple[Memory, list[str]]:
    """The note that a decision led to, and the steps back."""
    user_id = request.user.pk
    concerned = [*_concerned(user_id, [key]), *others]
    note, steps = with_steps(user_id, concerned, partial(work, user_id=user_id, memory_id=key))
    return note, steps


def _decided(request: SignedInRequest, key: UUID, text: str, steps: Sequence[str]) -> HttpResponse:
    if not request.headers.get("HX-Request"):
        done_next(request, text, steps)
        return redirect("memory:review")
    context = {"text": text, "key": key, "steps": steps}
    return render(request, "memory/review/_decided.html", context)


def _clean(text: str) -> str:
    """A text with the line breaks of notes rather than those of browsers."""
    return text.replace("\r\n", "\n")
