"""REST of notes: `/memories/` and what hangs on a note."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from apps.core.errors import InvalidInput, NotFound
from apps.core.http.rest import Listed, UserView, operation
from apps.core.http.shapes import Beside, page_of
from apps.core.ids import parse_id
from apps.memory.models import Memory, MemoryEdge, Origin, Trust
from apps.memory.notes import selectors
from apps.memory.notes.as_of import texts_at
from apps.memory.notes.changes import memory_delete, memory_update
from apps.memory.notes.creation import memory_bulk_create, memory_create
from apps.memory.notes.fields import MemoryInput, MemoryPatch, SupersedeInput
from apps.memory.notes.history import Version
from apps.memory.notes.joining import edge_create, edge_delete, memory_merge, memory_supersede
from apps.memory.notes.revisions import Change
from apps.memory.notes.selectors import NoteFilter
from apps.memory.notes.undoing import memory_restore, memory_undo

from .history_shapes import UseOutput, VersionOutput
from .shapes import (
    EdgeInput,
    EdgeOutput,
    MemoriesQuery,
    MemoryBulkInput,
    MemoryBulkOutput,
    MemoryOutput,
    MergeInput,
    RelatedOutput,
    RelatedQuery,
    RestoreInput,
    UndoInput,
)


class NotesView(UserView):
    """Base of the views of notes: whose notes, and who changes them. The ids of an address come as UUIDs."""

    scopes: Mapping[str, str] = {}
    """By method, the scope a token needs where it is not `read` for GET and `write` for all else."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        # What is asked for comes after who asks. The methods are called with these.
        self.kwargs.update({name: parse_id(value) for name, value in kwargs.items()})

    @property
    def throttle_scope(self) -> str | None:
        method = self.request.method or ""
        reads = method in SAFE_METHODS or self.scopes.get(method) == "read"
        return None if reads else "write"

    @property
    def change(self) -> Change:
        """A program came with a token, a person with the browser's session."""
        return Change(actor=Origin.API if self.request.auth else Origin.USER, trust=Trust.USER)

    def note(self, memory_id: UUID) -> Memory:
        return selectors.memory_get(self.user_id, memory_id)


READ_ONLY = frozenset(MemoryOutput.model_fields) - frozenset(MemoryInput.model_fields)


class MemoriesView(NotesView):
    """All notes."""

    @operation("memories_list", query=MemoriesQuery, answer=page_of("MemoryPage", MemoryOutput))
    def get(self, request: Request) -> Listed:
        """List notes."""
        query = self.query(MemoriesQuery)
        rows = selectors.memories_list(self.user_id, NoteFilter(**query.given))

        def as_of(shown: list[Memory]) -> list[Memory]:
            former = texts_at(self.user_id, [note.pk for note in shown], query.as_of)
            for note in shown:
                note.content = former.get(note.pk, note.content)
            return shown

        return Listed(rows, as_of if query.as_of else list)

    @operation("memories_create", body=MemoryInput, answer=MemoryOutput, status=201)
    def post(self, request: Request) -> Memory:
        """Save a note. It is searchable when this answers."""
        return memory_create(user_id=self.user_id, change=self.change, **self.body(MemoryInput).given)


class BulkView(NotesView):
    """Many notes at once."""

    @operation("memories_bulk_create", body=MemoryBulkInput, answer=MemoryBulkOutput, status=201)
    def post(self, request: Request) -> dict[str, Any]:
        """Save up to 1,000 notes, all or none. A plain list of notes is accepted too."""
        listed = {"memories": request.data} if isinstance(request.data, list) else None
        drafts = self.body(MemoryBulkInput, listed).memories
        notes = memory_bulk_create(user_id=self.user_id, drafts=drafts, change=self.change)
        return {"count": len(notes), "results": notes}


class MemoryView(NotesView):
    """One note."""

    @operation("memories_retrieve", answer=MemoryOutput)
    def get(self, request: Request, memory_id: UUID) -> Memory:
        """Read a note."""
        return self.note(memory_id)

    @operation("memories_update", body=MemoryPatch, answer=MemoryOutput)
    def patch(self, request: Request, memory_id: UUID) -> Memory:
        """Change fields of a note; its former state is kept in its history.

        A note may come back as it was read: what cannot be written is let pass where it is unchanged.
        """
        key, sent = memory_id, request.data
        present = MemoryOutput.dump(self.note(key))
        if isinstance(sent, dict):
            kept = {
                name for name in (READ_ONLY | {"status"}) & sent.keys() if sent[name] == present[name]
            }
            sent = {name: value for name, value in sent.items() if name not in kept}
        changes = self.body(MemoryPatch, sent).given
        memory_update(user_id=self.user_id, memory_id=key, change=self.change, **changes)
        return self.note(key)

    @operation("memories_delete", status=204)
    def delete(self, request: Request, memory_id: UUID) -> None:
        """Delete a note: out of search at once, restorable for 30 days."""
        memory_delete(user_id=self.user_id, memory_id=memory_id, change=self.change)


class HistoryView(NotesView):
    """A note's versions."""

    @operation("memories_history", answer=page_of("VersionPage", VersionOutput))
    def get(self, request: Request, memory_id: UUID) -> Listed:
        """All versions of a note, newest first."""
        return Listed(selectors.note_history(self.user_id, memory_id), versions_shown)


class UsesView(NotesView):
    """When a note came up."""

    @operation("memories_uses", answer=page_of("UsePage", UseOutput))
    def get(self, request: Request, memory_id: UUID) -> Any:
        """The last ten times that a note came up, newest first: beside which question, where, and why."""
        return selectors.note_uses(self.user_id, self.note(memory_id).pk)


def versions_shown(shown: list[Version]) -> list[Beside]:
    return [Beside(version, **version.state) for version in shown]


class RestoreView(NotesView):
    """The way back."""

    @operation("memories_restore", body=RestoreInput, answer=MemoryOutput)
    def post(self, request: Request, memory_id: UUID) -> Memory:
        """Bring back a deleted or archived note or, with `version`, what a note was in that version."""
        version = self.body(RestoreInput).version
        if version is None:
            memory_restore(user_id=self.user_id, memory_id=memory_id, change=self.change)
        else:
            memory_undo(user_id=self.user_id, memory_id=memory_id, version=version, change=self.change)
        return self.note(memory_id)


class MergeView(NotesView):
    """Several notes become one."""

    @operation("memories_merge", body=MergeInput, answer=MemoryOutput)
    def post(self, request: Request) -> Memory:
        """Merge notes: one stays, the others are superseded by it. Undoing it brings all back."""
        body = self.body(MergeInput)
        into = body.into or body.notes[0]
        if into not in body.notes:
            raise InvalidInput("into must be one of the notes.", field="into")
        merged = memory_merge(
            user_id=self.user_id,
            into_id=into,
            from_ids=[key for key in body.notes if key != into],
            content=body.content,
            change=self.change,
        )
        return self.note(merged.pk)


class SupersedeView(NotesView):
    """One note takes the place of another."""

    @operation("memories_supersede", body=SupersedeInput, answer=MemoryOutput, status=201)
    def post(self, request: Request, memory_id: UUID) -> Memory:
        """Save a note in the place of this one, from now on or from `valid_from`; what is left out is inherited."""
        key = self.note(memory_id).pk
        new = memory_supersede(
            user_id=self.user_id,
            memory_id=key,
            change=self.change,
            **self.body(SupersedeInput).given,
        )
        return self.note(new.pk)


class UndoView(NotesView):
    """The way back from a change."""

    @operation("memories_undo", body=UndoInput, answer=MemoryOutput)
    def post(self, request: Request, memory_id: UUID) -> Memory:
        """Bring a note back to a former version, with what the changes since did to other notes."""
        versions = selectors.note_history(self.user_id, memory_id)
        version = version_wanted(self.body(UndoInput), versions)
        memory_undo(user_id=self.user_id, memory_id=memory_id, version=version, change=self.change)
        return self.note(memory_id)


def version_wanted(body: RestoreInput, versions: Sequence[Version]) -> int:
    """The version that is named, or else the one before the last change; `versions` are newest first."""
    if body.version is None and len(versions) < 2:
        raise NotFound("Nothing has changed here yet.", code="unknown_version")
    return body.version or versions[1].version


class RelatedView(NotesView):
    """Notes near a note."""

    @operation("memories_related", query=RelatedQuery, answer=page_of("RelatedPage", RelatedOutput))
    def get(self, request: Request, memory_id: UUID) -> Listed:
        """The notes within some links of a note, in either direction, nearest first."""
        rows = selectors.related_notes(self.user_id, memory_id, depth=self.query(RelatedQuery).depth)
        return Listed(rows, lambda shown: [Beside(row.note, row) for row in shown])


class LinksView(NotesView):
    """The links of a note."""

    @operation("memories_links_list", answer=page_of("LinkPage", EdgeOutput))
    def get(self, request: Request, memory_id: UUID) -> Any:
        """The links that start or end at a note."""
        return selectors.links_of(self.user_id, memory_id)

    @operation("memories_links_create", body=EdgeInput, answer=EdgeOutput, status=201)
    def post(self, request: Request, memory_id: UUID) -> MemoryEdge:
        """Link a note to another; the same link again sets its weight."""
        source = self.note(memory_id)
        body = self.body(EdgeInput)
        return edge_create(
            user_id=self.user_id,
            source_id=source.pk,
            target_id=body.target,
            relation=body.relation,
            weight=body.weight,
        )


class LinkView(NotesView):
    """One link of a note."""

    @operation("memories_links_delete", status=204)
    def delete(self, request: Request, memory_id: UUID, edge_id: UUID) -> None:
        """Remove a link."""
        edge_delete(user_id=self.user_id, source_id=memory_id, edge_id=edge_id)
