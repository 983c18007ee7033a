"""Shapes of attachments."""

from uuid import UUID

from pydantic import Field

from apps.chat.models import AttachmentKind
from apps.core.http.shapes import Moment, Shape


class AttachmentOutput(Shape):
    """A file that the user brought."""

    id: UUID
    conversation: UUID | None = Field(
        validation_alias="conversation_id", description="Null until it is sent with a message."
    )
    name: str
    kind: AttachmentKind
    media_type: str
    size: int = Field(description="Bytes.")
    characters: int = Field(description="Of the text that was read of it.")
    whole: bool = Field(description="Whether all of its text was read.")
    pages: int = Field(description="Of a PDF.")
    width: int = Field(description="Pixels of an image, as it is shown.")
    height: int
    created_at: Moment
