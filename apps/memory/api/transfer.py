"""REST of taking out and bringing in: `/export/` and `/import/`."""

from typing import Any, Literal
from uuid import UUID

from django.http import QueryDict, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from pydantic import Field
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request

from apps.core.http.drf import StrictJSONParser
from apps.core.http.rest import Described, Listed, UserView, operation
from apps.core.http.shapes import ABSENT, Beside, Id, Moment, Query, Shape, page_of
from apps.memory.models import Import, ImportState
from apps.memory.transfer.jobs import import_cancel, import_get, imports_list
from apps.memory.transfer.requests import (
    JSONL,
    MARKDOWN,
    TYPES,
    ImportInput,
    export_answer,
    import_brought,
)

EXPORTED = {
    (200, TYPES[JSONL]): OpenApiResponse(OpenApiTypes.STR, "A record a line."),
    (200, TYPES[MARKDOWN]): OpenApiResponse(OpenApiTypes.BINARY, "A folder of Markdown files."),
    (200, "text/markdown"): OpenApiResponse(OpenApiTypes.STR, "One conversation or note."),
}


class ExportQuery(Query):
    format: Literal["jsonl", "markdown"] = Field(
        "jsonl", description="jsonl: all that there is, without loss; markdown: a zip to read."
    )
    conversation: Id = Field(ABSENT, description="Only this conversation, as Markdown.")
    note: Id = Field(ABSENT, description="Only this note: as Markdown, or with its past as JSON Lines.")


class ImportUpload(ImportInput):
    """The same as a form with a file."""

    file: bytes | None = Field(None, json_schema_extra={"type": "string", "format": "binary"})


class KindReport(Shape):
    kind: str
    taken: int
    merged: int = Field(description="Went into what was here before.")
    skipped: int
    wrong: int


class SkippedReport(Shape):
    kind: str
    reason: str
    count: int
    places: list[str] = Field(description="The first of them.")


class WrongReport(Shape):
    line: int | None
    place: str
    message: str


class ReportOutput(Shape):
    """The outcome for the records."""

    kinds: list[KindReport] = Field(default_factory=list)
    skipped: list[SkippedReport] = Field(default_factory=list)
    wrong: list[WrongReport] = Field(default_factory=list, description="At most 200.")
    notes: list[str] = Field(default_factory=list, description="Sentences about the file as a whole.")


class ProgressOutput(Shape):
    done: int = Field(description="Bytes of Izzy's own format, records of others.")
    total: int
    percent: int


class ImportErrorOutput(Shape):
    code: str = Field(validation_alias="error_code")
    message: str = Field(validation_alias="error")


class ImportOutput(Shape):
    """An import."""

    id: UUID
    state: ImportState
    name: str
    size: int = Field(description="Bytes.")
    format: str = Field(validation_alias="reader", description="The format that the file is in.")
    dry_run: bool
    own: bool
    accept: bool
    progress: ProgressOutput
    report: ReportOutput
    error: ImportErrorOutput | None
    created_at: Moment
    started_at: Moment | None
    ended_at: Moment | None


def import_seen(job: Import) -> Beside:
    return Beside(job, progress=job, error=job if job.error_code else None)


class ExportView(UserView):
    """All of the user's rows."""

    @operation("export", query=ExportQuery, described={"responses": EXPORTED})
    def get(self, request: Request) -> StreamingHttpResponse:
        """Take everything out: notes with their history and links, files, conversations, capabilities. No secrets, no approvals."""
        query = self.query(ExportQuery)
        return export_answer(
            self.user_id, query.format, conversation=query.conversation, note=query.note
        )


class ImportsView(UserView):
    """All imports, and new ones."""

    parser_classes = [StrictJSONParser, MultiPartParser]

    @operation("imports_list", answer=page_of("ImportPage", ImportOutput))
    def get(self, request: Request) -> Any:
        """List the imports, newest first."""
        return Listed(imports_list(self.user_id), lambda rows: map(import_seen, rows))

    @operation(
        "imports_create",
        body=ImportInput,
        answer=ImportOutput,
        status=202,
        described={"request": {"multipart/form-data": Described(ImportUpload)}},
    )
    def post(self, request: Request) -> Beside:
        """Bring in a file of Izzy's or another program's. The worker takes it in; ask for the import to see how far it is."""
        given = request.data
        if not isinstance(given, QueryDict):
            return import_seen(import_brought(self.user_id, self.body(ImportInput), None))
        sent = {name: given[name] for name in ImportInput.model_fields if name in given}
        body = self.body(ImportInput, sent)
        return import_seen(import_brought(self.user_id, body, request.FILES.get("file")))


class ImportView(UserView):
    """One import."""

    @operation("imports_retrieve", answer=ImportOutput)
    def get(self, request: Request, import_id: str) -> Beside:
        """How far an import is, and what became of its records."""
        return import_seen(import_get(self.user_id, import_id))


class ImportCancelView(UserView):
    """The end of an import."""

    @operation("imports_cancel", answer=ImportOutput)
    def post(self, request: Request, import_id: str) -> Beside:
        """Call an import off. What was taken stays."""
        return import_seen(import_cancel(user_id=self.user_id, import_id=import_id))
