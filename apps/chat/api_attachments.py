"""REST: files beside messages."""

from typing import Annotated, Any
from uuid import UUID

from django.conf import settings
from django.http import HttpResponse
from django.utils.http import content_disposition_header
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from pydantic import BeforeValidator, Field, WithJsonSchema
from rest_framework.parsers import MultiPartParser
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request

from apps.chat.attachments import services
from apps.chat.attachments.files import file_read
from apps.chat.attachments.kinds import clean_name
from apps.chat.attachments.selectors import attachment_get, attachments_for, text_part
from apps.chat.attachments.shapes import AttachmentOutput
from apps.chat.models import AttachmentKind
from apps.core.errors import InvalidInput, NotFound, TooLarge
from apps.core.http.drf import StrictJSONParser
from apps.core.http.rest import Described, UserView, operation
from apps.core.http.shapes import ABSENT, Id, OpenInput, Query, Shape, page_of

PRIVATE = "private, max-age=3600"
SEALED = "default-src 'none'; sandbox"
CONTENT = {
    (200, "application/octet-stream"): OpenApiResponse(
        OpenApiTypes.BINARY, "The file as it was brought."
    ),
    (200, "image/*"): OpenApiResponse(OpenApiTypes.BINARY, "With `shown`: an image as it is shown."),
}


class AttachmentsQuery(Query):
    conversation: Id = Field(ABSENT, description="Only those of this conversation.")


EMPTY_OR_ID = {"anyOf": [{"type": "string", "format": "uuid"}, {"type": "string", "maxLength": 0}]}


class AttachmentInput(OpenInput):
    """The fields of a form; what is left empty in one is a text without characters."""

    conversation: Annotated[
        Id | None, BeforeValidator(lambda given: given or None), WithJsonSchema(EMPTY_OR_ID)
    ] = Field(None, description="The conversation that it is meant for; empty where there is none yet.")


class AttachmentUpload(AttachmentInput):
    """A form with a file."""

    file: bytes = Field(json_schema_extra={"type": "string", "format": "binary"})


class ContentQuery(Query):
    shown: bool = Field(
        False, description="Of an image: the small, clean copy that pages and models get."
    )


class DeleteQuery(Query):
    unsent: bool = Field(False, description="Only where no message has it; else nothing happens.")


class TextQuery(Query):
    offset: int = Field(0, ge=0, le=2_000_000, description="Where to read on.")


class KeepInput(OpenInput):
    path: str | None = Field(
        None, max_length=1000, description="Under /memories; by its name where it is missing."
    )


class AttachmentTextOutput(Shape):
    text: str
    offset: int
    next: int | None = Field(description="The offset of the next part; null at the end.")
    characters: int


class KeptOutput(Shape):
    id: UUID
    path: str
    size: int = Field(description="Bytes.")


class AttachmentsView(UserView):
    """`GET POST /attachments/`."""

    parser_classes = [StrictJSONParser, MultiPartParser]

    @property
    def throttle_scope(self) -> str | None:
        return None if (self.request.method or "") in SAFE_METHODS else "attachments"

    @operation(
        "attachments_list",
        query=AttachmentsQuery,
        answer=page_of("AttachmentPage", AttachmentOutput),
    )
    def get(self, request: Request) -> Any:
        """List the files that were attached, newest first."""
        given, rows = self.query(AttachmentsQuery), attachments_for(self.user_id)
        return rows.filter(conversation_id=given.conversation) if given.conversation else rows

    @operation(
        "attachments_create",
        answer=AttachmentOutput,
        status=201,
        described={"request": {"multipart/form-data": Described(AttachmentUpload)}},
    )
    def post(self, request: Request) -> Any:
        """Bring a file for a message: text, PDF or image. It is read at once; name its id in the message."""
        file = request.FILES.get("file")
        if file is None:
            raise InvalidInput("Send a form with a file.", code="no_file", field="file")
        name, limit = clean_name(file.name), settings.IZZY_ATTACHMENT_LIMIT
        if (file.size or 0) > limit:
            size = services.megabytes(file.size or 0)
            raise TooLarge(
                f"“{name}” has {size}; at most {services.megabytes(limit)} can be attached.",
                field="file",
                limit=limit,
            )
        given: Any = request.data
        body = self.body(AttachmentInput, {"conversation": given.get("conversation")})
        return services.attachment_add(
            user_id=self.user_id, name=file.name, body=file.read(), conversation=body.conversation
        )


class AttachmentView(UserView):
    """`GET DELETE /attachments/{id}/`."""

    @operation("attachments_get", answer=AttachmentOutput)
    def get(self, request: Request, attachment_id: str) -> Any:
        """Say what a file is."""
        return attachment_get(self.user_id, attachment_id)

    @operation("attachments_delete", query=DeleteQuery, status=204)
    def delete(self, request: Request, attachment_id: str) -> None:
        """Delete a file for good. Its message stays, and so does what was said about it."""
        unsent = self.query(DeleteQuery).unsent
        services.attachment_delete(user_id=self.user_id, attachment_id=attachment_id, unsent=unsent)


class AttachmentContentView(UserView):
    """`GET /attachments/{id}/content/`."""

    @operation("attachments_content", query=ContentQuery, described={"responses": CONTENT})
    def get(self, request: Request, attachment_id: str) -> HttpResponse:
        """Download a file, or look at an image."""
        row = attachment_get(self.user_id, attachment_id)
        shown = self.query(ContentQuery).shown
        if shown and row.kind != AttachmentKind.IMAGE:
            raise NotFound("Only images are shown; this file can be downloaded.")
        response = HttpResponse(
            file_read(row, shown=shown),
            content_type=row.shown_type if shown else "application/octet-stream",
        )
        # Nothing that others made is a page here: it is saved, or it is a picture that was made anew.
        response.headers["Content-Disposition"] = (
            "inline" if shown else content_disposition_header(True, row.name) or "attachment"
        )
        response.headers["Content-Security-Policy"] = SEALED
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = PRIVATE
        return response


class AttachmentTextView(UserView):
    """`GET /attachments/{id}/text/`."""

    @operation("attachments_text", query=TextQuery, answer=AttachmentTextOutput)
    def get(self, request: Request, attachment_id: str) -> dict[str, Any]:
        """Read what was read of a file, part by part."""
        row, offset = attachment_get(self.user_id, attachment_id), self.query(TextQuery).offset
        text, after = text_part(row, offset)
        return {"text": text, "offset": offset, "next": after, "characters": row.characters}


class AttachmentKeepView(UserView):
    """`POST /attachments/{id}/keep/`."""

    @operation("attachments_keep", body=KeepInput, answer=KeptOutput, status=201)
    def post(self, request: Request, attachment_id: str) -> Any:
        """Put the text of a file under /memories, where every conversation can read it. It stays marked as others' words."""
        key = attachment_get(self.user_id, attachment_id).pk
        return services.attachment_keep(
            user_id=self.user_id, attachment_id=key, path=self.body(KeepInput).path
        )
