"""REST of changes that take in several notes, and their way back: merge, supersede, undo."""

from collections.abc import Sequence

from rest_framework.request import Request

from apps.core.errors import InvalidInput, NotFound
from apps.core.http.rest import operation
from apps.core.ids import parse_id
from apps.memory import selectors, services
from apps.memory.fields import SupersedeInput
from apps.memory.history.versions import Version
from apps.memory.models import Memory, Trust
from apps.memory.services import Provenance

from .base import NotesView
from .shapes import MemoryOutput, MergeInput, RestoreInput, UndoInput


class MergeView(NotesView):
    """Several notes become one."""

    @operation("memories_merge", body=MergeInput, answer=MemoryOutput)
    def post(self, request: Request) -> Memory:
        """Merge notes: one stays, the others are superseded by it. Undoing it brings all back."""
        body = self.body(MergeInput)
        into = body.into or body.notes[0]
        if into not in body.notes:
            raise InvalidInput("into must be one of the notes.", field="into")
        merged = services.memory_merge(
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
    def post(self, request: Request, memory_id: str) -> Memory:
        """Save a note in the place of this one, from now on or from `valid_from`; what is left out is inherited."""
        key = self.note(parse_id(memory_id)).pk
        new = services.memory_supersede(
            user_id=self.user_id,
            memory_id=key,
            provenance=Provenance(origin=self.origin, trust=Trust.USER),
            change=self.change,
            **self.body(SupersedeInput).given,
        )
        return self.note(new.pk)


class UndoView(NotesView):
    """The way back from a change."""

    @operation("memories_undo", body=UndoInput, answer=MemoryOutput)
    def post(self, request: Request, memory_id: str) -> Memory:
        """Bring a note back to a former version, with what the changes since did to other notes."""
        key = parse_id(memory_id)
        versions = selectors.note_history(self.user_id, key)
        version = version_wanted(self.body(UndoInput), versions)
        services.memory_undo(user_id=self.user_id, memory_id=key, version=version, change=self.change)
        return self.note(key)


def version_wanted(body: RestoreInput, versions: Sequence[Version]) -> int:
    """The version that is named, or else the one before the last change; `versions` are newest first."""
    if body.version is None and len(versions) < 2:
        raise NotFound("Nothing has changed here yet.", code="unknown_version")
    return body.version or versions[1].version
