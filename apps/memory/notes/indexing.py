"""Searchable parts of notes and files: the one place that turns rows into documents of the search index."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from django.db import transaction

from apps.memory.models import Memory, MemoryRevision
from apps.search.documents import Document, Facet, Label, Source
from apps.search.selectors import labels_of
from apps.search.services import documents_index, documents_remove

from .history import MAX_FORMER, SEARCHABLE, Span, spans_of

INDEXED_FIELDS = frozenset(
    {"content", "status", "tags", "category", "occasions", "valid_from", "valid_to"}
)
"""A change of one of these needs `notes_reindex`."""
BATCH = 100


def notes_reindex(user_id: UUID, notes: Sequence[Memory]) -> None:
    """Bring the search index in step with changed notes, inside the caller's transaction.

    What they said before stays findable as of its time.
    """
    hidden = [note.pk for note in notes if note.status not in SEARCHABLE]
    if hidden:
        documents_remove(user_id=user_id, source=Source.MEMORY, source_ids=hidden)
    documents: list[Document] = []
    for note in notes:
        if note.status in SEARCHABLE:
            *former, present = spans_of(note, _revisions(note))
            documents += documents_of(note, present)
            documents += [_past(note, span) for span in former[-MAX_FORMER:] if span.shown and span.end]
    documents_index(user_id=user_id, documents=documents)


def notes_catch_up() -> int:
    """Index again the notes, of whoever, whose tags or category search does not know; returns how many.

    In transactions of BATCH notes, from the oldest on; it may be ended and begun again at any time.
    """
    done, last = 0, None
    labelled = Memory.objects.unscoped().filter(status__in=SEARCHABLE).exclude(tags=[], category="")
    while True:
        notes = labelled if last is None else labelled.filter(pk__gt=last)
        batch = list(notes.order_by("pk")[:BATCH])
        if not batch:
            return done
        last = batch[-1].pk
        for user_id in {note.user_id for note in batch}:
            done += _catch_up(user_id, [note.pk for note in batch if note.user_id == user_id])


@transaction.atomic
def _catch_up(user_id: UUID, memory_ids: Sequence[UUID]) -> int:
    notes = list(Memory.objects.owned_by(user_id).select_for_update().filter(pk__in=memory_ids))
    known = labels_of(user_id, Source.MEMORY, memory_ids)
    behind = [note for note in notes if known.get(note.pk, ()) != labels_for(note.tags, note.category)]
    if behind:
        notes_reindex(user_id, behind)
    return len(behind)


def labels_for(tags: Sequence[str], category: str) -> tuple[Label, ...]:
    """Search labels of a note beside its text."""
    labels = [Label("tag", tag) for tag in tags]
    return (*labels, Label("category", category)) if category else tuple(labels)


def _revisions(note: Memory) -> list[MemoryRevision]:
    kept = MemoryRevision.objects.for_user(note.user_id).filter(memory_id=note.pk)
    return list(kept.order_by("version"))


def documents_of(note: Memory, span: Span | None = None) -> list[Document]:
    """A note as search has it: its text, and when it matters; `span` is its present one, where it has had others."""
    text = Document(
        source=Source.MEMORY,
        source_id=note.pk,
        text=note.content,
        happened_at=note.created_at,
        valid_from=span.start if span else note.valid_from or note.created_at,
        valid_to=note.valid_to,
        labels=labels_for(note.tags, note.category),
    )
    if not note.occasions:
        return [text]
    return [
        text,
        replace(text, text="\n".join(note.occasions), labels=(), facet=Facet.OCCASIONS),
    ]


def _past(note: Memory, span: Span) -> Document:
    """A former text. It stands alone: what the note says now does not support it in ranking."""
    return Document(
        source=Source.MEMORY,
        source_id=note.pk,
        text=span.text,
        happened_at=note.created_at,
        session=f"{note.pk}/{span.start.isoformat()}",
        valid_from=span.start,
        valid_to=span.end,
        past=True,
        labels=labels_for(span.tags, span.category),
    )
