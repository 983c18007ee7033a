"""The graph page: notes and their links; linking two of them and taking a link away."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.addressing import addressed
from apps.core.errors import REFUSALS, IzzyError
from apps.core.ids import parse_id
from apps.core.text import truncated
from apps.core.unmarked import unmarked
from apps.memory.models import Kind, Memory, MemoryEdge, Relation, Status
from apps.memory.notes.joining import edge_create, edge_delete
from apps.memory.notes.linked import MAX_NOTES, SHOWN, STEP, best_linked
from apps.memory.notes.selectors import NoteFilter, links_at, memories_by_id, memory_get, related_notes
from apps.memory.recall.searching import notes_search
from apps.memory.similarity import NOTES
from apps.memory.summary.keeping import linked_of
from apps.search.selectors import similar

from .done import done_last, done_next, named, own_note, page_url
from .notes import LEAST_SCORE, rows_of
from .paging import number_asked
from .picture import KNOWN, Graph, Link, Words, pictures

CHOICES = [
    (str(relation), KNOWN[relation].forth) for relation in (Relation.RELATED, Relation.ELABORATES)
]
"""Links a reader may make; the others come from replacing and from contradictions."""

MAX_DRAWN = 400
DEPTH = 2


def graph_of(user_id: UUID, most: int, *, kind: str = "", tag: str = "") -> Graph:
    """The best linked notes, each followed by what it is linked to; of a kind, with a tag."""
    narrowed = kind or tag
    chosen, linked = (
        best_linked(user_id, most=most, kind=kind, tag=tag) if narrowed else linked_of(user_id, most)
    )
    notes = memories_by_id(user_id, chosen)
    shown = (notes[key] for key in chosen if key in notes)
    return _between(user_id, [note for note in shown if note.status in SHOWN], linked)


def graph_around(user_id: UUID, memory_id: UUID, most: int) -> Graph:
    """A note and those at most DEPTH links away, nearest first. Raises NotFound."""
    found = related_notes(user_id, memory_id, depth=DEPTH, limit=most, statuses=SHOWN)
    notes = [memory_get(user_id, memory_id), *(row.note for row in found)]
    return _between(user_id, notes[:most], len(notes))


def _between(user_id: UUID, notes: Sequence[Memory], linked: int) -> Graph:
    """The graph of these notes with the links between them."""
    places = {note.pk: place for place, note in enumerate(notes)}
    between = Q(source_id__in=places.keys(), target_id__in=places.keys())
    rows = MemoryEdge.objects.owned_by(user_id).filter(between).order_by("-weight", "pk")
    links = []
    for source_id, target_id, relation in rows.values_list("source_id", "target_id", "relation")[
        :MAX_DRAWN
    ]:
        source, target = places[source_id], places[target_id]
        links.append(Link(source, target, Words.of(relation, notes[source], notes[target])))
    return Graph(notes, links, linked)


FOUND_AT_MOST = 8
LIKE_IT_AT_MOST = 4
LEAST_LIKENESS = 0.5
"""Similarity of notes (`apps.search.selectors.similar`) from which on they are about the same."""
MAX_LISTED = 100
LISTED_CHARS, SHORT_CHARS = 200, 120


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
    user_id, asked = request.user.pk, request.GET.get("note", "")
    query = request.GET.get("q", "").strip()[:1000]
    chosen = memory_get(user_id, parse_id(asked)) if asked else None
    filters = GraphForm(request.GET)
    filters.is_valid()
    given = {name: value for name, value in filters.cleaned_data.items() if value}
    most = min(max(number_asked(request.GET.get("most")), STEP), MAX_NOTES)
    shown = graph_around(user_id, chosen.pk, most) if chosen else graph_of(user_id, most, **given)
    context = {
        "nav": "memory",
        "query": query,
        "pictures": pictures(shown, chosen=chosen is not None),
        "graph": shown,
        "listed": _listed(shown),
        "filters": filters,
        "narrowed": bool(given),
        "asked": f"&{urlencode(given)}" if given else "",
        "more": _more(shown, most),
        "any": bool(shown.notes)
        or Memory.objects.for_user(user_id).filter(status=Status.ACTIVE).exists(),
        **({"row": rows_of(user_id, [(chosen, None)])[0]} if chosen else {}),
        **(around(user_id, chosen) if chosen else {}),
        **done_last(request),
    }
    if query:
        try:
            hits = notes_search(
                user_id, query, wanted=NoteFilter(), top_k=FOUND_AT_MOST, threshold=LEAST_SCORE
            )
            linked = {near.note.pk for near in context.get("links", [])}
            context["found"] = [
                (note, chosen is not None and note.pk not in {chosen.pk, *linked}) for _, note in hits
            ]
        except IzzyError as error:
            context["problem"] = error.message
    return render(request, "memory/graph/page.html", context)


class GraphForm(forms.Form):
    """The filters of the picture; a value that it does not know counts as not given."""

    kind = forms.ChoiceField(label="Kind", required=False, choices=[("", "All kinds"), *Kind.choices])
    tag = forms.CharField(
        label="Tag",
        required=False,
        max_length=50,
        widget=forms.TextInput(attrs={"placeholder": "Any tag", "autocomplete": "off"}),
    )


def _more(shown: Graph, most: int) -> int:
    """The number of notes to show next; 0 where there are no more, or the picture is full."""
    return min(most + STEP, MAX_NOTES) if most < MAX_NOTES and shown.linked > len(shown.notes) else 0


@require_POST
@own_note
def link(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Link a note to another of the user's: `target`, `relation`."""
    relation, target = request.POST.get("relation", ""), parse_id(request.POST.get("target", ""))
    known = relation if relation in dict(CHOICES) else CHOICES[0][0]
    try:
        edge_create(user_id=request.user.pk, source_id=memory_id, target_id=target, relation=known)
        done_next(request, f"Linked to {named(request.user.pk, [target])}.")
    except REFUSALS as error:
        done_next(request, error.message, failed=True)
    return _back(request, memory_id)


@require_POST
@own_note
def unlink(request: SignedInRequest, memory_id: UUID, edge_id: UUID) -> HttpResponse:
    """Take a link of a note away."""
    edge_delete(user_id=request.user.pk, source_id=memory_id, edge_id=edge_id)
    done_next(request, "The link is taken away.")
    return _back(request, memory_id)


def _back(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """To the page that the form stood on, which is the graph unless it says otherwise."""
    around_it = f"{reverse('memory:graph')}?note={memory_id}"
    return redirect(page_url(request) if "page" in request.POST else around_it)


def around(user_id: UUID, chosen: Memory) -> dict[str, Any]:
    """Context of the chosen note: its links, and notes about the same that it is not linked to."""
    links = []
    for edge in links_at(chosen)[:MAX_LISTED]:
        words = Words.of(edge.relation, edge.source, edge.target)
        outward = edge.source_id == chosen.pk
        other = edge.target if outward else edge.source
        links.append(Neighbour(words.forth if outward else words.back, other, edge.pk))
    like_it: list[Memory] = []
    if chosen.status == Status.ACTIVE:
        linked = {chosen.pk, *(near.note.pk for near in links)}
        near = similar(user_id, chosen.content, top_k=LIKE_IT_AT_MOST + len(linked), scope=NOTES)
        ids = [key for key, likeness in near if likeness >= LEAST_LIKENESS and key not in linked]
        notes = Memory.objects.owned_by(user_id).in_bulk(ids)
        like_it = [notes[key] for key in ids if key in notes and notes[key].status == Status.ACTIVE]
    return {
        "chosen": chosen,
        "links": links,
        "like_it": like_it[:LIKE_IT_AT_MOST],
        "relations": CHOICES,
    }


def _listed(found: Graph) -> list[tuple[Memory, str, SafeString]]:
    """The picture in words: each note with its text, and what it is linked to as rows of a list."""
    near: dict[int, list[tuple[str, str]]] = defaultdict(list)
    texts = [truncated(addressed(unmarked(note.content)), LISTED_CHARS) for note in found.notes]
    shorts = [truncated(" ".join(text.split()), SHORT_CHARS) for text in texts]
    for link in found.links:
        near[link.source].append((link.words.forth, shorts[link.target]))
        near[link.target].append((link.words.back, shorts[link.source]))
    row = '<li class="small"><span class="faint">{}</span> <span class="break" dir="auto">{}</span></li>'
    return [
        (note, texts[place], format_html_join("", row, near[place]))
        for place, note in enumerate(found.notes)
    ]
