"""The review page: what waits for the user's word, and what cannot both be true."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.addressing import addressed
from apps.core.errors import REFUSALS, IzzyError, NotFound
from apps.core.http.htmx import is_fragment
from apps.core.ids import parse_id
from apps.core.text import plain_breaks, revealed
from apps.memory.models import Memory, MemoryEdge, Proposal, Relation, Status
from apps.memory.notes.history import DiffPiece, text_diff
from apps.memory.notes.joining import contradiction_resolve
from apps.memory.notes.review import (
    is_put_away,
    review_accept,
    review_decide,
    review_merge,
    review_queue,
    review_reject,
    text_proposed,
)
from apps.memory.notes.selectors import memories_by_id, memory_get, open_contradictions
from apps.memory.notes.undoing import steps_take, versions_of
from apps.memory.similarity import NOTES, says_the_same
from apps.search.selectors import similar_each

from .done import done_last, done_next, named, own_note, page_url, with_steps
from .forms import NOTHING_WRITTEN

PAGE_SIZE = 10
CONTRADICTIONS_SHOWN = 10
LARGE = 3_000
"""Of a memory with more notes a card looks for a note like it once it is seen: that takes longer the more there are."""
CANDIDATES = 3
WORDS = {"accept": "Accepted", "reject": "Rejected"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A note that waits, and what stands against it."""

    note: Memory
    action: Proposal
    other: (
        Memory | None
    )  # the note it proposes to change or replace, else the active one that says the same, if any
    similarity: float | None  # 0 to 1; None where it was not measured
    text: str  # what is remembered once it is accepted
    diff: tuple[DiffPiece, ...]  # from the other's text to this one
    looks: bool = False  # whether one like it is yet to be looked for

    @property
    def changes_other(self) -> bool:
        """Whether accepting it changes or replaces the other note."""
        return self.action != Proposal.ADD


def waiting_of(
    user_id: UUID,
    notes: Sequence[Memory],
    shown: Callable[[str], str] = str,
    *,
    look: bool = True,
) -> list[Waiting]:
    """The notes with what stands against each, by the rule that capture merges by, in their order; `shown` makes of a text
    what the reader sees of it. Without `look` none is compared with all notes: a card does so by itself later."""
    known = memories_by_id(
        user_id, [note.proposed_target_id for note in notes if note.proposed_target_id]
    )
    targets = {
        note.pk: target
        for note in notes
        if note.proposed_target_id
        and (target := known.get(note.proposed_target_id))
        and not is_put_away(target, note)
    }
    alone = [note for note in notes if look and note.pk not in targets]
    each = similar_each(user_id, [note.content for note in alone], top_k=CANDIDATES, scope=NOTES)
    near = dict(zip((note.pk for note in alone), each, strict=True))
    known = memories_by_id(user_id, {key for found in near.values() for key, _ in found})
    waiting = []
    for note in notes:
        target = targets.get(note.pk)
        other, similarity = (target, None) if target else _alike(note, near.get(note.pk, ()), known)
        text = text_proposed(note, target) if target else note.content
        waiting.append(
            Waiting(
                note=note,
                action=Proposal(note.proposed_action) if target else Proposal.ADD,
                other=other,
                similarity=similarity,
                text=text,
                diff=tuple(text_diff(shown(other.content), shown(text))) if other else (),
                looks=not look and not target,
            )
        )
    return waiting


def _alike(
    note: Memory, near: Sequence[tuple[UUID, float]], known: Mapping[UUID, Memory]
) -> tuple[Memory | None, float | None]:
    """The active note among those near to one that says the same, and how alike they are, if there is any."""
    for key, alike in near:
        one = known.get(key)
        if one and one.status == Status.ACTIVE and says_the_same(note.content, one.content, alike):
            return one, alike
    return None, None


@require_http_methods(["GET", "POST"])
def queue(request: SignedInRequest) -> HttpResponse:
    """The page; a POST accepts or rejects what is ticked and shows it again."""
    user_id, decision = request.user.pk, request.POST.get("decision", "")
    if request.method != "POST":
        return _page(request)
    if decision not in WORDS:
        return _page(request, "Choose what to do with the memories.")
    try:
        ids = [parse_id(value) for value in request.POST.getlist("notes")]
        decide = partial(review_decide, user_id=user_id, memory_ids=ids, accept=decision == "accept")
        done, steps = with_steps(user_id, _concerned(user_id, ids), decide)
    except NotFound:
        return _page(request, "One of these memories is no longer there.")
    except IzzyError as error:
        return _page(request, error.message)
    kept = [key for key in ids if key not in done.failed]
    said = f"{WORDS[decision]} {named(user_id, kept)}." if kept else ""
    missed = f" {len(done.failed)} no longer waited." if done.failed else ""
    done_next(request, (said + missed).strip(), steps, failed=not kept)
    return redirect("memory:review")


def _as_shown(text: str) -> str:
    return revealed(addressed(text))


def _page(request: SignedInRequest, problem: str = "") -> HttpResponse:
    user_id = request.user.pk
    page = Paginator(review_queue(user_id), PAGE_SIZE).get_page(request.GET.get("page"))
    large = Memory.objects.for_user(user_id).order_by()[LARGE : LARGE + 1].exists()
    context = {
        "nav": "memory",
        "page": page,
        "items": waiting_of(user_id, list(page), _as_shown, look=not large),
        "contradictions": list(open_contradictions(user_id)[:CONTRADICTIONS_SHOWN]),
        "problem": problem,
        **done_last(request),
    }
    return render(request, "memory/review/page.html", context, status=422 if problem else 200)


@require_GET
@own_note
def card(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """The card of a note that waits."""
    return _card(request, memory_id)


@require_http_methods(["GET", "POST"])
@own_note
def accept(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """GET: the form to change the text before; POST: do what the note proposes, with that text where it is given."""
    if request.method != "POST":
        return _card(request, memory_id, form="edit")
    text = request.POST.get("content")
    work = partial(review_accept, content=None if text is None else plain_breaks(text))
    form = "edit" if text is not None else ""
    return _decide(request, memory_id, work, ("Accepted", "Accepted and changed"), form=form, text=text)


@require_http_methods(["GET", "POST"])
@own_note
def merge(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """GET: the form with both texts; POST: let the note that stands against it take it in."""
    if request.method != "POST":
        return _card(request, memory_id, form="merge")
    text, into = request.POST.get("content", ""), parse_id(request.POST.get("into", ""))
    work = partial(review_merge, into_id=into, content=plain_breaks(text))
    return _decide(request, memory_id, work, ("", "Merged into"), into, form="merge", text=text)


@require_POST
@own_note
def reject(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Turn a note down; answers with the way back."""
    return _decide(request, memory_id, review_reject, ("Rejected", ""))


@require_POST
@own_note
def put_back(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Undo what was decided (`step`): the note waits again."""
    if not versions_of(request.user.pk, [memory_id]):
        raise NotFound("There is no memory with this id.")
    try:
        steps_take(user_id=request.user.pk, steps=request.POST.getlist("step"))
    except REFUSALS as error:
        context = {"text": error.message, "key": memory_id}
        return render(request, "memory/review/_decided.html", context, status=422)
    return _card(request, memory_id, badges_too=True)


@require_POST
@own_note
def settle(request: SignedInRequest, edge_id: UUID) -> HttpResponse:
    """Say which of two notes is true, or (`keep` empty) that both are."""
    keep, user_id = request.POST.get("keep", ""), request.user.pk
    keep_id = parse_id(keep) if keep else None
    edge = open_contradictions(user_id).filter(pk=edge_id).first()
    if edge is None:
        raise NotFound("There is no open contradiction with this id.")
    ends = [edge.source_id, edge.target_id]
    if keep_id and keep_id not in ends:
        raise NotFound("The contradiction is not about this memory.")
    links = MemoryEdge.objects.for_user(user_id).filter(relation=Relation.RELATED)
    linked = links.filter(source_id=edge.source_id, target_id=edge.target_id).exists()
    resolve = partial(contradiction_resolve, user_id=user_id, edge_id=edge_id, keep_id=keep_id)
    _, steps = with_steps(user_id, ends, resolve)
    if keep_id:
        other = next(end for end in ends if end != keep_id)
        text = f"Settled: {named(user_id, [other])} is kept as what held before."
    else:
        text, steps = "Both are kept as true.", [f"contradicts {ends[0]} {ends[1]} {int(linked)}"]
    if is_fragment(request) and reverse("memory:review") in request.headers.get("HX-Current-URL", ""):
        return render(request, "memory/review/_settled.html", {"text": text, "steps": steps})
    done_next(request, text, steps)
    if "page" in request.POST:
        url = page_url(request)
    else:
        url = reverse("memory:list" if is_fragment(request) else "memory:review")
    return HttpResponse(headers={"HX-Redirect": url}) if is_fragment(request) else redirect(url)


def _card(request: SignedInRequest, key: UUID, *, problem: str = "", **more: Any) -> HttpResponse:
    """The card or form of a note that waits, or in its place the problem of one that does not any more."""
    note = memory_get(request.user.pk, key)
    if note.status != Status.PENDING:
        if not problem:
            return redirect("memory:review")
        return render(request, "memory/review/_decided.html", {"text": problem, "key": key}, status=422)
    (item,) = waiting_of(request.user.pk, [note], _as_shown)
    template = "memory/review/_form.html" if more.get("form") else "memory/review/_card.html"
    context = {"item": item, "focus": not problem, "problem": problem, **more}
    return render(request, template, context, status=422 if problem else 200)


def _concerned(user_id: UUID, keys: Sequence[UUID]) -> list[UUID]:
    """The notes that a decision on these may change: they themselves, those that they propose to change, and whatever has
    replaced those since."""
    notes = Memory.objects.owned_by(user_id)
    targets = notes.filter(pk__in=keys).exclude(proposed_target=None)
    found, last = dict.fromkeys(keys), list(targets.values_list("proposed_target_id", flat=True))
    while last:
        found |= dict.fromkeys(last)
        later = notes.filter(supersedes__in=last).exclude(pk__in=found)
        last = list(later.values_list("pk", flat=True))
    return list(found)


def _decide(
    request: SignedInRequest,
    key: UUID,
    work: Callable[..., Memory],
    words: tuple[str, str],
    *others: UUID,
    **form: Any,
) -> HttpResponse:
    """Does the work on a note that waits, which may change `others` too; the answer says what was done, with the way back.

    `words` are for a decision that ends in the note itself, and for one that ends in another. `form` is shown again with
    the problem if there is one.
    """
    user_id = request.user.pk
    concerned = [*_concerned(user_id, [key]), *others]
    try:
        note, steps = with_steps(user_id, concerned, partial(work, user_id=user_id, memory_id=key))
    except REFUSALS as error:
        problem = NOTHING_WRITTEN if error.code == "empty_text" else error.message
        return _card(request, key, problem=problem, **form)
    text = f"{words[note.pk != key]} {named(user_id, [note.pk])}."
    if is_fragment(request):
        return render(request, "memory/review/_decided.html", {"text": text, "key": key, "steps": steps})
    done_next(request, text, steps)
    return redirect("memory:review")
