"""The picture of the notes and their links; linking two of them and taking a link away."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.errors import IzzyError, NotFound
from apps.core.ids import parse_id
from apps.memory import selectors, services
from apps.memory.addressing import addressed
from apps.memory.models import Memory, MemoryEdge, Status
from apps.memory.recall.searching import notes_search
from apps.memory.selectors import NoteFilter
from apps.memory.similarity import NOTES
from apps.memory.views.cards import own_note
from apps.memory.views.listing import LEAST_SCORE, rows_of
from apps.memory.views.taking_back import done_last, done_next, named
from apps.search.selectors import similar

from .picture import pictures
from .relations import CHOICES, Words
from .selectors import MAX_NOTES, Graph, graph_around, graph_of

FOUND_AT_MOST = 8
LIKE_IT_AT_MOST = 4
LEAST_LIKENESS = 0.5
"""Similarity of notes (`apps.search.selectors.similar`) from which on they are about the same."""
MAX_LISTED = 100


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A link as it is read from one of its notes."""

    words: str
    note: Memory
    edge_id: UUID | None = None


@require_GET
@own_note
def graph(request: SignedInRequest) -> HttpResponse:
    """`?note=` shows what is around a note, else the best linked; `?q=` finds notes to look around or to link to that one."""
    asked = request.GET.get("note", "")
    query = request.GET.get("q", "").strip()[:1000]
    chosen = selectors.memory_get(request.user.pk, parse_id(asked)) if asked else None
    context = {"nav": "memory", "query": query, **_drawn(request.user.pk, chosen), **done_last(request)}
    if query:
        try:
            hits = notes_search(
                request.user.pk, query, wanted=NoteFilter(), top_k=FOUND_AT_MOST, threshold=LEAST_SCORE
            )
            linked = {near.note.pk for near in context.get("links", [])}
            context["found"] = [
                (note, chosen is not None and note.pk not in {chosen.pk, *linked}) for _, note in hits
            ]
        except IzzyError as error:
            context["problem"] = error.message
    return render(request, "memory/graph/page.html", context)


@require_POST
@own_note
def link(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Link a note to another of the user's: `target`, `relation`."""
    key = parse_id(memory_id)
    relation, target = request.POST.get("relation", ""), parse_id(request.POST.get("target", ""))
    try:
        services.edge_create(
            user_id=request.user.pk,
            source_id=key,
            target_id=target,
            relation=relation if relation in dict(CHOICES) else CHOICES[0][0],
        )
    except NotFound:
        raise
    except IzzyError as error:
        done_next(request, error.message, failed=True)
    else:
        done_next(request, f"Linked to {named(request.user.pk, [target])}.")
    return redirect(f"{reverse('memory:graph')}?note={key}")


@require_POST
@own_note
def unlink(request: SignedInRequest, memory_id: str, edge_id: str) -> HttpResponse:
    """Take a link of a note away."""
    key = parse_id(memory_id)
    services.edge_delete(user_id=request.user.pk, source_id=key, edge_id=parse_id(edge_id))
    done_next(request, "The link is taken away.")
    return redirect(f"{reverse('memory:graph')}?note={key}")


def _drawn(user_id: UUID, chosen: Memory | None) -> dict[str, Any]:
    found = graph_around(user_id, chosen.pk) if chosen else graph_of(user_id)
    context: dict[str, Any] = {
        "pictures": pictures(found, chosen=chosen is not None),
        "graph": found,
        "listed": _listed(found),
        "most": MAX_NOTES,
        "any": bool(found.notes) or Memory.objects.for_user(user_id).filter(status=Status.ACTIVE).exists(),
    }
    return context | (_around(user_id, chosen) if chosen else {})


def _around(user_id: UUID, chosen: Memory) -> dict[str, Any]:
    """Context of the chosen note: its card, its links, and notes like it that it is not linked to."""
    links = [_neighbour(edge, chosen.pk) for edge in selectors.links_of(user_id, chosen.pk)[:MAX_LISTED]]
    (row,) = rows_of(user_id, [(chosen, None)])
    linked = {chosen.pk, *(near.note.pk for near in links)}
    return {
        "chosen": chosen,
        "row": row,
        "links": links,
        "like_it": _like(user_id, chosen, linked),
        "relations": CHOICES,
    }


def _neighbour(edge: MemoryEdge, of: UUID) -> Neighbour:
    words = Words.of(edge.relation, edge.source, edge.target)
    outward = edge.source_id == of
    return Neighbour(words.forth if outward else words.back, edge.target if outward else edge.source, edge.pk)


def _like(user_id: UUID, chosen: Memory, linked: set[UUID]) -> list[Memory]:
    """Notes about the same that have no link to it yet."""
    if chosen.status != Status.ACTIVE:
        return []
    near = similar(user_id, chosen.content, top_k=LIKE_IT_AT_MOST + len(linked), scope=NOTES)
    ids = [key for key, likeness in near if likeness >= LEAST_LIKENESS and key not in linked]
    notes = selectors.memories_by_id(user_id, ids)
    like = [notes[key] for key in ids if key in notes and notes[key].status == Status.ACTIVE]
    return like[:LIKE_IT_AT_MOST]


def _listed(found: Graph) -> list[tuple[Memory, str, list[Neighbour]]]:
    """The picture in words: each note with what it is linked to."""
    near: dict[int, list[Neighbour]] = defaultdict(list)
    for link in found.links:
        words = Words.of(link.relation, found.notes[link.source], found.notes[link.target])
        near[link.source].append(Neighbour(words.forth, found.notes[link.target]))
        near[link.target].append(Neighbour(words.back, found.notes[link.source]))
    return [(note, addressed(note.content), near[place]) for place, note in enumerate(found.notes)]
