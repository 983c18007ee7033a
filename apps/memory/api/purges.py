"""REST of purges: a note's, a file's, and the receipts."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from django.db.models import QuerySet
from pydantic import Field
from rest_framework.request import Request

from apps.core.errors import InvalidInput, TooLarge
from apps.core.http.rest import Listed, operation
from apps.core.http.shapes import ABSENT, Beside, Checked, ClosedInput, Shape, page_of
from apps.core.ids import parse_id
from apps.core.purging.remains import scrubbed_at
from apps.memory.models import Purged, PurgeReceipt, PurgeState
from apps.memory.purge import (
    MAX_ALSO,
    MAX_REDACTED,
    Preview,
    Redact,
    memory_purge,
    purge_preview,
    receipt_get,
)

from .notes import NotesView
from .shapes import TEXTS


def _ids(value: object, *, field: str, limit: int = MAX_ALSO) -> list[UUID]:
    """A list of ids; NotFound for a malformed one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInput(f"{field} must be a list of ids.", code="wrong_type", field=field)
    if len(value) > limit:
        raise TooLarge(f"At most {limit} ids in {field}.", field=field, limit=limit)
    return list(dict.fromkeys(map(parse_id, value)))


def _redact(value: object, *, field: str) -> Redact:
    return value if isinstance(value, bool) else _ids(value, field=field, limit=MAX_REDACTED)


REDACT = {
    "oneOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "string", "format": "uuid"}}],
    "nullable": True,
}


class FilePurgeInput(ClosedInput):
    """`redact`: also replace these messages that say the same."""

    redact: Annotated[Any, Checked(_redact, REDACT)] = Field(
        ABSENT, description="true: all of source_messages; or a list of their ids."
    )


class PurgeInput(FilePurgeInput):
    """`also`: further notes to purge with it."""

    also: Annotated[list[UUID], Checked(_ids, {**TEXTS, "maxItems": MAX_ALSO, "nullable": True})] = (
        Field(ABSENT, description="Ids.")
    )


class PlaceOutput(Shape):
    """One place that was looked into, counted in rows."""

    place: str
    label: str
    why: str = Field(description="Why something is left there.")
    found: int
    removed: int
    left: int


class PointerOutput(Shape):
    """A message that says the same, without its words."""

    id: UUID
    conversation: UUID
    redacted: bool


class DiskOutput(Shape):
    """Whether what was removed is off the disk too."""

    state: Literal["done", "scheduled"]
    at: datetime | None


class ReceiptOutput(Shape):
    """A purge's receipt: what it found, removed and left; no purged text."""

    id: UUID
    source: Purged
    memory_id: UUID = Field(description="The note, or the file.")
    ids: list[UUID] = Field(validation_alias="subject_ids")
    state: PurgeState
    by_sweep: bool
    started_at: datetime
    purged_at: datetime | None
    places: list[PlaceOutput]
    left: list[PlaceOutput]
    source_messages: list[PointerOutput]
    related: list[UUID] = Field(validation_alias="related_ids")
    disk: DiskOutput


class SourceOutput(Shape):
    """A message that says the same and could be redacted too."""

    id: UUID
    conversation: UUID = Field(validation_alias="conversation_id")
    role: str
    title: str
    excerpt: str
    recorded: bool = Field(description="The note itself names it as its source.")
    created_at: datetime


class RelatedNoteOutput(Shape):
    """Another note that says the same, or replaced it."""

    id: UUID
    note_id: str
    content: str
    status: str


class PreviewOutput(Shape):
    """All that a purge would touch beside the note."""

    source: Purged
    id: UUID
    source_messages: list[SourceOutput] = Field(validation_alias="sources")
    related: list[RelatedNoteOutput]


class PurgeView(NotesView):
    """Taking a note out of everything, for good."""

    @operation("memories_purge_preview", answer=PreviewOutput)
    def get(self, request: Request, memory_id: UUID) -> Preview:
        """Preview a purge: the messages and other notes that say the same."""
        return purge_preview(self.user_id, Purged.NOTE, memory_id)

    @operation("memories_purge", body=PurgeInput, answer=ReceiptOutput)
    def post(self, request: Request, memory_id: UUID) -> Beside:
        """Purge a note of any status, also a deleted one; there is no way back. Answers with the receipt."""
        body = self.body(PurgeInput)
        ids = [memory_id, *(body.also or ())]
        return _receipt(memory_purge(user_id=self.user_id, ids=ids, redact=body.redact or False))


class FilePurgeView(NotesView):
    """Taking a file out of everything, for good."""

    @operation("memory_files_purge_preview", answer=PreviewOutput)
    def get(self, request: Request, file_id: UUID) -> Preview:
        """Preview a file's purge."""
        return purge_preview(self.user_id, Purged.FILE, file_id)

    @operation("memory_files_purge", body=FilePurgeInput, answer=ReceiptOutput)
    def post(self, request: Request, file_id: UUID) -> Beside:
        """Purge a file by its id (see the list), also a deleted one. Answers with the receipt."""
        redact = self.body(FilePurgeInput).redact or False
        return _receipt(
            memory_purge(user_id=self.user_id, ids=[file_id], source=Purged.FILE, redact=redact)
        )


class ReceiptsView(NotesView):
    """The receipts of all purges."""

    @operation("memory_purges_list", answer=page_of("ReceiptPage", ReceiptOutput))
    def get(self, request: Request) -> Listed:
        """List receipts, newest first."""
        rows: QuerySet[PurgeReceipt] = PurgeReceipt.objects.for_user(self.user_id)
        return Listed(rows, lambda shown: list(map(_receipt, shown)))


class ReceiptView(NotesView):
    """One receipt."""

    @operation("memory_purges_retrieve", answer=ReceiptOutput)
    def get(self, request: Request, receipt_id: UUID) -> Beside:
        """Read a receipt; `disk` is up to date."""
        return _receipt(receipt_get(self.user_id, receipt_id))


def _receipt(receipt: PurgeReceipt) -> Beside:
    """A receipt, and whether the file of the database has been cleaned since; otherwise the worker will do it."""
    done = scrubbed_at(receipt.purged_at)
    disk = {"state": "done" if done else "scheduled", "at": done}
    return Beside(receipt, memory_id=receipt.subject_ids[0], disk=disk)
