"""Searching notes by meaning and words, limited by a note's own fields."""

from dataclasses import replace
from uuid import UUID

from apps.search.documents import Hit, Scope, Source
from apps.search.selectors import search

from .models import Memory, Status
from .selectors import NoteFilter, memories_by_id, memories_list

NOTES = Scope(sources=frozenset({Source.MEMORY}))


def notes_search(
    user_id: UUID, query: str, *, wanted: NoteFilter, top_k: int, scope: Scope = NOTES
) -> list[tuple[Hit, Memory]]:
    """The best notes for a query among those that fit `wanted` (its `q`, status and order do not count).

    Notes that are not active are left out, unless the search is `as_of` another time.
    """
    limits = replace(wanted, q="", status="", ordering=NoteFilter().ordering)
    if limits != NoteFilter():
        ids = memories_list(user_id, limits).order_by().values_list("pk", flat=True)
        scope = replace(scope, only_ids=frozenset(ids))
    hits = search(user_id, query, top_k=top_k, scope=scope)
    notes = memories_by_id(user_id, [hit.source_id for hit in hits])
    return [
        (hit, note)
        for hit in hits
        if (note := notes.get(hit.source_id)) and (scope.as_of or note.status == Status.ACTIVE)
    ]
