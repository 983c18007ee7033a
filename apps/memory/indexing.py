"""What of a note is searchable: the one place that turns notes into documents of the search index."""

from collections.abc import Sequence
from uuid import UUID

from apps.search.documents import Document, Source
from apps.search.services import documents_index, documents_remove

from .models import Memory, Status

SEARCHABLE = frozenset({Status.ACTIVE, Status.SUPERSEDED})
"""Superseded notes stay in the index: a search `as_of` an earlier time finds them, one of today does not."""

INDEXED_FIELDS = frozenset({"content", "status", "valid_from", "valid_to"})
"""A change of one of these needs `notes_index`."""


def notes_index(user_id: UUID, notes: Sequence[Memory]) -> None:
    """Bring the search index in step with the notes' present state, inside the caller's transaction."""
    shown = [note for note in notes if note.status in SEARCHABLE]
    hidden = [note.pk for note in notes if note.status not in SEARCHABLE]
    if shown:
        documents_index(user_id=user_id, documents=[_document(note) for note in shown])
    if hidden:
        documents_remove(user_id=user_id, source=Source.MEMORY, source_ids=hidden)


def notes_reindex(user_id: UUID, notes: Sequence[Memory]) -> None:
    """As `notes_index`, for notes that were changed: what they said before stays findable as of its time."""
    notes_index(user_id, notes)


def _document(note: Memory) -> Document:
    return Document(
        source=Source.MEMORY,
        source_id=note.pk,
        text=note.content,
        happened_at=note.created_at,
        valid_from=note.valid_from or note.created_at,
        valid_to=note.valid_to,
    )
