"""Requests of REST and the page: the file that is sent, and the form or text that comes."""

from collections.abc import AsyncIterator, Iterable
from typing import Annotated, Any
from uuid import UUID

from django.core.files.uploadedfile import UploadedFile
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.http import content_disposition_header
from pydantic import Field

from apps.core.errors import InvalidInput
from apps.core.http.shapes import Lax, OpenInput
from apps.core.ids import note_id
from apps.core.transfer import Document
from apps.memory.models import Import
from apps.memory.transfer.exporting import (
    conversation_export,
    export_lines,
    export_markdown,
    note_lines,
    note_markdown,
    streamed,
)
from apps.memory.transfer.jobs import import_create

Flag = Annotated[bool, Lax]  # of a form it is text
JSONL, MARKDOWN = "jsonl", "markdown"
TYPES = {JSONL: "application/x-ndjson", MARKDOWN: "application/zip"}


class ImportInput(OpenInput):
    """Something to bring in: a file (as a part of a form), or text."""

    text: str | None = Field(None, description="The text itself, for example pasted memories.")
    format: str = Field(
        "auto", max_length=32, description="auto, izzy, or the format of another program."
    )
    dry_run: Flag = Field(False, description="Only say what would become of it.")
    own: Flag = Field(
        False,
        description="It is my own export: what Izzy trusted it trusts again. Of Izzy's format only.",
    )
    accept: Flag = Field(
        False, description="I vouch for what it says; else its notes wait for review as others' words."
    )


def export_answer(
    user_id: UUID, format: str, *, conversation: UUID | None = None, note: UUID | None = None
) -> StreamingHttpResponse:
    """The file, as it is made: of everything, of one conversation (Markdown in either format), or of one note. NotFound for what
    is not the user's."""
    name = f"izzy-{timezone.localdate():%Y-%m-%d}"
    if note is not None and format == JSONL:
        return _download(note_lines(user_id, note), TYPES[JSONL], f"{note_id(note)}.jsonl")
    if note is not None:
        return _document(note_markdown(user_id, note))
    if conversation is not None:
        return _document(conversation_export(user_id, conversation))
    if format == MARKDOWN:
        return _download(export_markdown(user_id), TYPES[MARKDOWN], f"{name}-markdown.zip")
    return _download(export_lines(user_id), TYPES[JSONL], f"{name}.jsonl")


def _document(document: Document) -> StreamingHttpResponse:
    parts = (part.encode() for part in document.parts)
    return _download(parts, "text/markdown; charset=utf-8", document.path.rpartition("/")[2])


class Download(StreamingHttpResponse):
    """A file that is made while it is sent: on an event loop each chunk on the database pool."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return streamed(iter(self))


def _download(parts: Iterable[bytes], content_type: str, name: str) -> StreamingHttpResponse:
    response = Download(iter(parts), content_type=content_type)
    response.headers["Content-Disposition"] = content_disposition_header(True, name) or "attachment"
    return response


def import_brought(user_id: UUID, body: ImportInput, file: "UploadedFile[Any] | None") -> Import:
    """The import of a form's file or text. InvalidInput where neither or both are given, and as `import_create`."""
    if (file is None) == (not body.text):
        raise InvalidInput("Send a file, or text.", code="no_file", field="file")
    chunks: Iterable[bytes] = (
        file.chunks() if file is not None else [str(body.text).encode("utf-8", "replace")]
    )
    return import_create(
        user_id=user_id,
        chunks=chunks,
        name=(file.name or "") if file is not None else "",
        pasted=file is None,
        format=body.format,
        dry_run=body.dry_run,
        own=body.own,
        accept=body.accept,
    )
