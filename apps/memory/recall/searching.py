"""Searching notes by meaning and words, limited by a note's own fields."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from apps.agent.selectors import conversations_untrusted
from apps.memory.capture.windows import conversations_tainted
from apps.memory.models import Memory, MemoryFile, MemoryRevision, Status, Trust
from apps.memory.notes.selectors import NoteFilter, memories_by_id, memories_list
from apps.memory.similarity import NOTES
from apps.search.causes import explained
from apps.search.documents import Hit, Packed, Scope, Source
from apps.search.selectors import context, search

UNTRUSTED = "from an untrusted source"


def notes_search(
    user_id: UUID,
    query: str,
    *,
    wanted: NoteFilter,
    top_k: int,
    scope: Scope = NOTES,
    threshold: float = 0.0,
) -> list[tuple[Hit, Memory]]:
    """The best notes for a query among those that fit `wanted` (its `q`, status and order do not count).

    Notes that are not active are left out, unless the search is `as_of` another time.
    """
    limits = replace(wanted, q="", status="", ordering=NoteFilter().ordering)
    if limits != NoteFilter():
        ids = memories_list(user_id, limits).order_by().values_list("pk", flat=True)
        scope = replace(scope, only_ids=frozenset(ids))
    hits = search(user_id, query, top_k=top_k, scope=scope, threshold=threshold)
    notes = memories_by_id(user_id, [hit.source_id for hit in hits])
    return [
        (hit, note)
        for hit in hits
        if (note := notes.get(hit.source_id)) and (scope.as_of or note.status == Status.ACTIVE)
    ]


def context_for(
    user_id: UUID, query: str, *, budget_tokens: int, scope: Scope, threshold: float = 0.0
) -> tuple[Packed, set[UUID]]:
    """A context block in which what comes from untrusted sources says so, and the ids of such documents."""
    untrusted: set[UUID] = set()

    def remarks(hits: Sequence[Hit]) -> dict[UUID, str]:
        untrusted.update(untrusted_among(user_id, hits, as_of=scope.as_of))
        return dict.fromkeys(untrusted, UNTRUSTED)

    packed = context(
        user_id, query, budget_tokens=budget_tokens, scope=scope, threshold=threshold, remarks=remarks
    )
    return replace(packed, items=explained(query, packed.items)), untrusted


def untrusted_among(user_id: UUID, hits: Iterable[Hit], *, as_of: datetime | None = None) -> set[UUID]:
    """The ids of those notes, files and messages that repeat untrusted words.

    A note that the user has rewritten since then counts too where it is asked for `as_of` another time; of a message that is not
    the user's what the model had read in its conversation counts.
    """
    hits = list(hits)
    ids: dict[Source, list[UUID]] = {}
    for hit in hits:
        ids.setdefault(hit.source, []).append(hit.source_id)
    found: set[UUID] = set()
    if notes := ids.get(Source.MEMORY):
        rows = Memory.objects.owned_by(user_id).filter(pk__in=notes, trust=Trust.UNTRUSTED)
        found.update(rows.values_list("pk", flat=True))
        if as_of is not None:
            former = MemoryRevision.objects.owned_by(user_id).filter(memory_id__in=notes)
            found.update(former.filter(state__trust=Trust.UNTRUSTED).values_list("memory_id", flat=True))
    if files := ids.get(Source.FILE):
        kept = MemoryFile.objects.owned_by(user_id).filter(pk__in=files, trust=Trust.UNTRUSTED)
        found.update(kept.values_list("pk", flat=True))
    spoken = [hit for hit in hits if hit.source == Source.CONVERSATION]
    if talks := {hit.conversation_id for hit in spoken if hit.conversation_id is not None}:
        tainted = conversations_tainted(user_id, talks)
        read = conversations_untrusted(user_id=user_id, conversation_ids=talks)
        found.update(
            hit.source_id
            for hit in spoken
            if hit.conversation_id in tainted or (hit.conversation_id in read and hit.speaker != "user")
        )
    return found
