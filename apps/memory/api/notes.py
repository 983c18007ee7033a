"""REST of notes: `/memories/` and what hangs on a note."""

from typing import Any, cast

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.errors import InvalidInput
from apps.core.ids import parse_id
from apps.core.rest_views import page_of
from apps.memory import selectors, services
from apps.memory.fields import MemoryChanges, clean_time
from apps.memory.models import Memory, Trust
from apps.memory.selectors import NoteFilter
from apps.memory.services import Provenance

from .base import NotesView
from .inputs import body_object, version_given
from .output import memory_json, version_json
from .serializers import (
    BULK_OUTPUT,
    MemoriesQuery,
    MemoryBulkInput,
    MemoryInput,
    MemoryOutput,
    RestoreInput,
    VersionOutput,
)

FIELDS = frozenset(MemoryInput().fields)
READ_ONLY = frozenset(MemoryOutput().fields) - FIELDS


@extend_schema(tags=["memories"])
class MemoriesView(NotesView):
    """All notes."""

    @extend_schema(
        operation_id="memories_list",
        parameters=[MemoriesQuery],
        responses=page_of("MemoryPage", MemoryOutput(many=True)),
    )
    def get(self, request: Request) -> Response:
        """List notes."""
        wanted = NoteFilter(**self.parameters(MemoriesQuery))
        notes = selectors.memories_list(self.user_id, wanted)
        return self.pages_of(notes, lambda rows: self._rows(rows, wanted))

    def _rows(self, notes: list[Memory], wanted: NoteFilter) -> list[dict[str, Any]]:
        """The notes; of another time in the words of then."""
        rows = list(map(memory_json, notes))
        if wanted.as_of:
            moment = clean_time(wanted.as_of, field="as_of")
            former = selectors.texts_at(self.user_id, [note.pk for note in notes], moment)
            for note, row in zip(notes, rows, strict=True):
                row["content"] = former.get(note.pk, note.content)
        return rows

    @extend_schema(operation_id="memories_create", request=MemoryInput, responses={201: MemoryOutput})
    def post(self, request: Request) -> Response:
        """Save a note. It is searchable when this answers."""
        body = {"content": None, **body_object(request.data, FIELDS)}
        provenance = Provenance(origin=self.origin, trust=Trust.USER)
        note = services.memory_create(user_id=self.user_id, provenance=provenance, **body)
        return Response(memory_json(note), status=status.HTTP_201_CREATED)


@extend_schema(tags=["memories"])
class BulkView(NotesView):
    """Many notes at once."""

    @extend_schema(operation_id="memories_bulk_create", request=MemoryBulkInput, responses={201: BULK_OUTPUT})
    def post(self, request: Request) -> Response:
        """Save up to 1,000 notes, all or none. A plain list of notes is accepted too."""
        drafts: Any = request.data
        if not isinstance(drafts, list):
            drafts = body_object(drafts, {"memories"}).get("memories")
        if not isinstance(drafts, list):
            raise InvalidInput("memories must be a list of notes.", code="wrong_type", field="memories")
        provenance = Provenance(origin=self.origin, trust=Trust.USER)
        notes = services.memory_bulk_create(user_id=self.user_id, drafts=drafts, provenance=provenance)
        body = {"count": len(notes), "results": [memory_json(note) for note in notes]}
        return Response(body, status=status.HTTP_201_CREATED)


@extend_schema(tags=["memories"])
class MemoryView(NotesView):
    """One note."""

    @extend_schema(operation_id="memories_retrieve", responses=MemoryOutput)
    def get(self, request: Request, memory_id: str) -> Response:
        """Read a note."""
        return Response(self.note(parse_id(memory_id)))

    @extend_schema(operation_id="memories_update", request=MemoryInput(partial=True), responses=MemoryOutput)
    def patch(self, request: Request, memory_id: str) -> Response:
        """Change fields of a note; its former state is kept in its history.

        A note may come back as it was read: what cannot be written is let pass where it is unchanged.
        """
        key = parse_id(memory_id)
        present = self.note(key)
        given = body_object(request.data, FIELDS | READ_ONLY)
        same = {name for name in (READ_ONLY | {"status"}) & given.keys() if given[name] == present[name]}
        written = {name: value for name, value in given.items() if name not in same}
        changes = cast("MemoryChanges", body_object(written, FIELDS))
        services.memory_update(user_id=self.user_id, memory_id=key, change=self.change, **changes)
        return Response(self.note(key))

    @extend_schema(operation_id="memories_delete", responses={204: None})
    def delete(self, request: Request, memory_id: str) -> Response:
        """Delete a note: out of search at once, restorable for 30 days."""
        services.memory_delete(user_id=self.user_id, memory_id=parse_id(memory_id), change=self.change)
        return Response(status=status.HTTP_204_NO_CONTENT)


@extend_schema(tags=["memories"])
class HistoryView(NotesView):
    """What a note was before."""

    @extend_schema(
        operation_id="memories_history", responses=page_of("VersionPage", VersionOutput(many=True))
    )
    def get(self, request: Request, memory_id: str) -> Response:
        """All versions of a note, newest first."""
        return self.page(selectors.note_history(self.user_id, parse_id(memory_id)), version_json)


@extend_schema(tags=["memories"])
class RestoreView(NotesView):
    """The way back."""

    @extend_schema(operation_id="memories_restore", request=RestoreInput, responses=MemoryOutput)
    def post(self, request: Request, memory_id: str) -> Response:
        """Bring back a deleted or archived note or, with `version`, what a note was in that version."""
        key = parse_id(memory_id)
        version = version_given(request.data)
        if version is None:
            services.memory_restore(user_id=self.user_id, memory_id=key, change=self.change)
        else:
            services.memory_undo(user_id=self.user_id, memory_id=key, version=version, change=self.change)
        return Response(self.note(key))
