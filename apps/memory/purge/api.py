"""REST of purges: a note's, a file's, and the receipts."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.errors import InvalidInput, TooLarge
from apps.core.ids import parse_id
from apps.memory.api import NotesView
from apps.memory.inputs import body_object
from apps.memory.models import PurgeReceipt
from apps.memory.serializers import page_of

from .output import preview_json, receipt_json
from .preview import file_purge_preview, memory_purge_preview
from .selectors import receipt_get
from .serializers import FilePurgeInput, PreviewOutput, PurgeInput, ReceiptOutput
from .services import MAX_ALSO, MAX_REDACTED, Redact, file_purge, memory_purge


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
