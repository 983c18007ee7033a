"""REST of changes that take in several notes, and their way back: merge, supersede, undo."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.errors import InvalidInput
from apps.core.ids import parse_id
from apps.memory import selectors, services
from apps.memory.models import Trust
from apps.memory.services import Provenance

from .base import NotesView
from .inputs import body_object, id_list, version_wanted
from .notes import FIELDS
from .serializers import MemoryInput, MemoryOutput, MergeInput, UndoInput


@extend_schema(tags=["memories"])
class MergeView(NotesView):
    """Several notes become one."""

    @extend_schema(operation_id="memories_merge", request=MergeInput, responses=MemoryOutput)
    def post(self, request: Request) -> Response:
        """Merge notes: one stays, the others are superseded by it. Undoing it brings all back."""
        body = body_object(request.data, {"notes", "into", "content"})
        notes = id_list(body.get("notes"), field="notes")
        into = parse_id(body["into"]) if body.get("into") is not None else notes[0]
        if into not in notes:
            raise InvalidInput("into must be one of the notes.", field="into")
        merged = services.memory_merge(
            user_id=self.user_id,
            into_id=into,
            from_ids=[key for key in notes if key != into],
            content=body.get("content"),
            change=self.change,
        )
        return Response(self.note(merged.pk))


@extend_schema(tags=["memories"])
class SupersedeView(NotesView):
    """One note takes the place of another."""

    @extend_schema(operation_id="memories_supersede", request=MemoryInput, responses={201: MemoryOutput})
    def post(self, request: Request, memory_id: str) -> Response:
        """Save a note in the place of this one, from now on or from `valid_from`; what is left out is inherited."""
        key = parse_id(memory_id)
        selectors.memory_get(self.user_id, key)
        body: dict[str, Any] = {"content": None, **body_object(request.data, FIELDS - {"status"})}
        provenance = Provenance(origin=self.origin, trust=Trust.USER)
        new = services.memory_supersede(
            user_id=self.user_id, memory_id=key, provenance=provenance, change=self.change, **body
        )
        return Response(self.note(new.pk), status=status.HTTP_201_CREATED)


@extend_schema(tags=["memories"])
class UndoView(NotesView):
    """The way back from a change."""

    @extend_schema(operation_id="memories_undo", request=UndoInput, responses=MemoryOutput)
    def post(self, request: Request, memory_id: str) -> Response:
        """Bring a note back to a former version, with what the changes since did to other notes."""
        key = parse_id(memory_id)
        versions = selectors.note_history(self.user_id, key)
        version = version_wanted(request.data, versions)
        services.memory_undo(user_id=self.user_id, memory_id=key, version=version, change=self.change)
        return Response(self.note(key))
