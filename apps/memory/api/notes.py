"""REST of notes: `/memories/` and what hangs on a note."""

from datetime import datetime
from typing import Any

from rest_framework.request import Request

from apps.core.http.rest import Listed, operation
from apps.core.http.shapes import Beside, page_of
from apps.core.ids import parse_id
from apps.memory import selectors, services
from apps.memory.fields import MemoryInput, MemoryPatch
from apps.memory.history.versions import NoteVersion
from apps.memory.models import Memory, Trust
from apps.memory.selectors import NoteFilter
from apps.memory.services import Provenance

from .base import NotesView
from .shapes import (
    MemoriesQuery,
    MemoryBulkInput,
    MemoryBulkOutput,
    MemoryOutput,
    RestoreInput,
    VersionOutput,
)

READ_ONLY = frozenset(MemoryOutput.model_fields) - frozenset(MemoryInput.model_fields)


class MemoriesView(NotesView):
    """All notes."""

    @operation("memories_list", query=MemoriesQuery, answer=page_of("MemoryPage", MemoryOutput))
    def get(self, request: Request) -> Listed:
        """List notes."""
        query = self.query(MemoriesQuery)
        rows = selectors.memories_list(self.user_id, NoteFilter(**query.given))
        return Listed(rows, lambda shown: self._as_of(shown, query.as_of))

    def _as_of(self, notes: list[Memory], moment: datetime | None) -> list[Memory]:
        """The notes; of another time in the words of then."""
        if moment:
            former = selectors.texts_at(self.user_id, [note.pk for note in notes], moment)
            for note in notes:
                note.content = former.get(note.pk, note.content)
        return notes

    @operation("memories_create", body=MemoryInput, answer=MemoryOutput, status=201)
    def post(self, request: Request) -> Memory:
        """Save a note. It is searchable when this answers."""
        provenance = Provenance(origin=self.origin, trust=Trust.USER)
        body = self.body(MemoryInput)
        return services.memory_create(user_id=self.user_id, provenance=provenance, **body.given)


class BulkView(NotesView):
    """Many notes at once."""

    @operation("memories_bulk_create", body=MemoryBulkInput, answer=MemoryBulkOutput, status=201)
    def post(self, request: Request) -> dict[str, Any]:
        """Save up to 1,000 notes, all or none. A plain list of notes is accepted too."""
        listed = {"memories": request.data} if isinstance(request.data, list) else None
        drafts = self.body(MemoryBulkInput, listed).memories
        provenance = Provenance(origin=self.origin, trust=Trust.USER)
        notes = services.memory_bulk_create(user_id=self.user_id, drafts=drafts, provenance=provenance)
        return {"count": len(notes), "results": notes}


class MemoryView(NotesView):
    """One note."""

    @operation("memories_retrieve", answer=MemoryOutput)
    def get(self, request: Request, memory_id: str) -> Memory:
        """Read a note."""
        return self.note(parse_id(memory_id))

    @operation("memories_update", body=MemoryPatch, answer=MemoryOutput)
    def patch(self, request: Request, memory_id: str) -> Memory:
        """Change fields of a note; its former state is kept in its history.

        A note may come back as it was read: what cannot be written is let pass where it is unchanged.
        """
        key, sent = parse_id(memory_id), request.data
        present = MemoryOutput.dump(self.note(key))
        if isinstance(sent, dict):
            kept = {name for name in (READ_ONLY | {"status"}) & sent.keys() if sent[name] == present[name]}
            sent = {name: value for name, value in sent.items() if name not in kept}
        changes = self.body(MemoryPatch, sent).given
        services.memory_update(user_id=self.user_id, memory_id=key, change=self.change, **changes)
        return self.note(key)

    @operation("memories_delete", status=204)
    def delete(self, request: Request, memory_id: str) -> None:
        """Delete a note: out of search at once, restorable for 30 days."""
        services.memory_delete(user_id=self.user_id, memory_id=parse_id(memory_id), change=self.change)


class HistoryView(NotesView):
    """A note's versions."""

    @operation("memories_history", answer=page_of("VersionPage", VersionOutput))
    def get(self, request: Request, memory_id: str) -> Listed:
        """All versions of a note, newest first."""
        return Listed(selectors.note_history(self.user_id, parse_id(memory_id)), _versions)


def _versions(shown: list[NoteVersion]) -> list[Beside]:
    return [Beside(version, **version.state) for version in shown]


class RestoreView(NotesView):
    """The way back."""

    @operation("memories_restore", body=RestoreInput, answer=MemoryOutput)
    def post(self, request: Request, memory_id: str) -> Memory:
        """Bring back a deleted or archived note or, with `version`, what a note was in that version."""
        key = parse_id(memory_id)
        version = self.body(RestoreInput).version
        if version is None:
            services.memory_restore(user_id=self.user_id, memory_id=key, change=self.change)
        else:
            services.memory_undo(user_id=self.user_id, memory_id=key, version=version, change=self.change)
        return self.note(key)
