"""REST of purges: a note's, a file's, and the receipts."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.errors import InvalidInput, TooLarge
from apps.core.ids import parse_id
from apps.core.rest_views import ClosedInput, page_of
from apps.memory.models import Purged, PurgeReceipt, PurgeState
from apps.memory.purge.selectors import file_purge_preview, memory_purge_preview, receipt_get
from apps.memory.purge.services import MAX_ALSO, MAX_REDACTED, Redact, file_purge, memory_purge

from .base import NotesView
from .inputs import body_object
from .output import preview_json, receipt_json


@extend_schema_field(
    {"oneOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "string", "format": "uuid"}}]}
)
class RedactField(serializers.JSONField):
    """True for all source messages, or the ids of some."""


class FilePurgeInput(ClosedInput):
    """`redact`: also replace these messages that say the same."""

    redact = RedactField(required=False, help_text="true: all of source_messages; or a list of their ids.")


class PurgeInput(FilePurgeInput):
    """`also`: further notes to purge with it."""

    also = serializers.ListField(
        child=serializers.CharField(), max_length=MAX_ALSO, required=False, help_text="Ids."
    )


class PlaceOutput(serializers.Serializer[Any]):
    """One place that was looked into, counted in rows."""

    place = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]  # the name of one of its own attributes
    why = serializers.CharField(help_text="Why something is left there.")
    found = serializers.IntegerField()
    removed = serializers.IntegerField()
    left = serializers.IntegerField()


class PointerOutput(serializers.Serializer[Any]):
    """A message that says the same, without its words."""

    id = serializers.UUIDField()
    conversation = serializers.UUIDField()
    redacted = serializers.BooleanField()


class DiskOutput(serializers.Serializer[Any]):
    """Whether what was removed is off the disk too."""

    state = serializers.ChoiceField(["done", "scheduled"])
    at = serializers.DateTimeField(allow_null=True)


class ReceiptOutput(serializers.Serializer[Any]):
    """What a purge found, removed and left. Holds no word of what was purged."""

    id = serializers.UUIDField()
    source = serializers.ChoiceField(Purged.choices)  # type: ignore[assignment]  # likewise
    memory_id = serializers.UUIDField(help_text="The note, or the file.")
    ids = serializers.ListField(child=serializers.UUIDField())
    state = serializers.ChoiceField(PurgeState.choices)
    by_sweep = serializers.BooleanField()
    started_at = serializers.DateTimeField()
    purged_at = serializers.DateTimeField(allow_null=True)
    places = PlaceOutput(many=True)
    left = PlaceOutput(many=True)
    source_messages = PointerOutput(many=True)
    related = serializers.ListField(child=serializers.UUIDField())
    disk = DiskOutput()


class SourceOutput(serializers.Serializer[Any]):
    """A message that says the same and could be redacted too."""

    id = serializers.UUIDField()
    conversation = serializers.UUIDField()
    role = serializers.CharField()
    title = serializers.CharField()
    excerpt = serializers.CharField()
    recorded = serializers.BooleanField(help_text="The note itself names it as its source.")
    created_at = serializers.DateTimeField()


class RelatedNoteOutput(serializers.Serializer[Any]):
    """Another note that says the same, or replaced it."""

    id = serializers.UUIDField()
    note_id = serializers.CharField()
    content = serializers.CharField()
    status = serializers.CharField()


class PreviewOutput(serializers.Serializer[Any]):
    """What a purge would touch beside the note itself."""

    source = serializers.ChoiceField(Purged.choices)  # type: ignore[assignment]  # likewise
    id = serializers.UUIDField()
    source_messages = SourceOutput(many=True)
    related = RelatedNoteOutput(many=True)


@extend_schema(tags=["memories"])
class PurgeView(NotesView):
    """Taking a note out of everything, for good."""

    @extend_schema(operation_id="memories_purge_preview", responses=PreviewOutput)
    def get(self, request: Request, memory_id: str) -> Response:
        """What a purge would touch: messages that say the same, other notes that do."""
        return Response(preview_json(memory_purge_preview(self.user_id, parse_id(memory_id))))

    @extend_schema(operation_id="memories_purge", request=PurgeInput, responses=ReceiptOutput)
    def post(self, request: Request, memory_id: str) -> Response:
        """Purge a note of any status, also a deleted one; there is no way back. Answers with the receipt."""
        key = parse_id(memory_id)
        body = body_object(request.data, {"redact", "also"})
        also = _ids(body, "also", MAX_ALSO)
        receipt = memory_purge(user_id=self.user_id, memory_id=key, redact=_redact(body), also=also)
        return Response(receipt_json(receipt))


@extend_schema(tags=["memories"])
class FilePurgeView(NotesView):
    """Taking a file out of everything, for good."""

    @extend_schema(operation_id="memory_files_purge_preview", responses=PreviewOutput)
    def get(self, request: Request, file_id: str) -> Response:
        """What a purge would touch."""
        return Response(preview_json(file_purge_preview(self.user_id, parse_id(file_id))))

    @extend_schema(operation_id="memory_files_purge", request=FilePurgeInput, responses=ReceiptOutput)
    def post(self, request: Request, file_id: str) -> Response:
        """Purge a file by its id (see the list), also a deleted one. Answers with the receipt."""
        key = parse_id(file_id)
        body = body_object(request.data, {"redact"})
        return Response(receipt_json(file_purge(user_id=self.user_id, file_id=key, redact=_redact(body))))


@extend_schema(tags=["memories"])
class ReceiptsView(NotesView):
    """The receipts of all purges."""

    @extend_schema(
        operation_id="memory_purges_list", responses=page_of("ReceiptPage", ReceiptOutput(many=True))
    )
    def get(self, request: Request) -> Response:
        """List receipts, newest first."""
        return self.page(PurgeReceipt.objects.for_user(self.user_id), receipt_json)


@extend_schema(tags=["memories"])
class ReceiptView(NotesView):
    """One receipt."""

    @extend_schema(operation_id="memory_purges_retrieve", responses=ReceiptOutput)
    def get(self, request: Request, receipt_id: str) -> Response:
        """Read a receipt; `disk` is up to date."""
        return Response(receipt_json(receipt_get(self.user_id, parse_id(receipt_id))))


def _redact(body: Mapping[str, Any]) -> Redact:
    value = body.get("redact")
    if value is None or isinstance(value, bool):
        return bool(value)
    return _ids(body, "redact", MAX_REDACTED)


def _ids(body: Mapping[str, Any], field: str, limit: int) -> list[UUID]:
    """A list of ids; NotFound for a malformed one."""
    values = body.get(field)
    if values is None:
        return []
    if not isinstance(values, list):
        raise InvalidInput(f"{field} must be a list of ids.", code="wrong_type", field=field)
    if len(values) > limit:
        raise TooLarge(f"At most {limit} ids in {field}.", field=field, limit=limit)
    return list(dict.fromkeys(parse_id(value) for value in values))
