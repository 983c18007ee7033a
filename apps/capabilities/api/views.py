"""REST of capabilities: `/capabilities/` and what hangs on one, addressed by its name (or id); and running code of an answer once."""

from collections.abc import Callable, Mapping
from textwrap import dedent
from typing import IO, Annotated, Any, Literal

from asgiref.sync import async_to_sync
from django.http import HttpResponse
from django.urls import path
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from pydantic import Field
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from apps.capabilities.api.shapes import (
    CapabilitiesQuery,
    CapabilityDetailOutput,
    CapabilityInput,
    CapabilityOutput,
    CapabilityPatch,
    ExecutionOutput,
    RunInput,
    RunOutput,
    VersionInput,
    capability_opened,
    capability_seen,
    run_seen,
)
from apps.capabilities.catalog.archives import archive_of, archive_read
from apps.capabilities.catalog.drafts import Draft
from apps.capabilities.catalog.lifecycle import (
    capability_approve,
    capability_delete,
    capability_disable,
    capability_enable,
    capability_rollback,
)
from apps.capabilities.catalog.selectors import capabilities_for, capability_get, executions_of
from apps.capabilities.catalog.versions import capability_create, capability_update
from apps.capabilities.models import Capability, Origin, Trigger
from apps.capabilities.runs.execution import RunOrigin, capability_execute, executions_interrupt
from apps.capabilities.runs.snippets import MAX_CODE_CHARS, snippet_run
from apps.core.errors import InvalidInput
from apps.core.http.drf import StrictJSONParser
from apps.core.http.rest import Listed, UserView, operation
from apps.core.http.shapes import Beside, Checked, OpenInput, Shape, page_of
from apps.core.text import clean_text

ZIP = {(200, "application/zip"): OpenApiResponse(OpenApiTypes.BINARY, "The four files.")}
ONE = "capabilities/<str:capability>/"


class ZipParser(BaseParser):
    """A capability as an archive: the bytes themselves."""

    media_type = "application/zip"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        return bytes(stream.read())


class CapabilityView(UserView):
    """The base of capabilities' views."""

    @property
    def origin(self) -> Origin:
        return Origin.API if self.request.auth else Origin.USER

    def find(self, name: str) -> Capability:
        return capability_get(self.user_id, name)

    def opened(self, name: object) -> Beside:
        return capability_opened(capability_get(self.user_id, name))

    def change(self, name: str, service: Callable[..., object], **options: Any) -> Beside:
        """The capability after the service has done its work on it."""
        found = self.find(name)
        service(user_id=self.user_id, capability_id=found.pk, **options)
        return self.opened(found.name)


def archive_response(capability: Capability) -> HttpResponse:
    """A download of a capability."""
    response = HttpResponse(archive_of(capability), content_type="application/zip")
    response["Content-Disposition"] = f'attachment; filename="{capability.name}.zip"'
    return response


class CapabilitiesView(CapabilityView):
    """All capabilities."""

    parser_classes = [StrictJSONParser, ZipParser]

    @operation(
        "capabilities_list", query=CapabilitiesQuery, answer=page_of("CapabilityPage", CapabilityOutput)
    )
    def get(self, request: Request) -> Listed:
        """List capabilities by name."""
        rows = capabilities_for(self.user_id, **self.query(CapabilitiesQuery).given)
        return Listed(rows, lambda shown: map(capability_seen, shown))

    @operation(
        "capabilities_create",
        body=CapabilityInput,
        answer=CapabilityDetailOutput,
        status=201,
        described={"request": {"application/zip": OpenApiTypes.BINARY}},
    )
    def post(self, request: Request) -> Beside:
        """Make a capability: active, or waiting for `approve/` where it asks for hosts or secrets.

        As `application/zip` an archive is brought in; that one is disabled until it is approved.
        """
        if isinstance(request.data, bytes):
            name, draft = archive_read(request.data)
            made = capability_create(
                user_id=self.user_id, name=name, draft=draft, origin=Origin.IMPORT, untrusted=True
            )
        else:
            body = self.body(CapabilityInput)
            draft = Draft(**{"main": "", **body.draft_parts})
            made = capability_create(
                user_id=self.user_id, name=body.name, draft=draft, origin=self.origin
            )
        return self.opened(made.name)


class OneCapabilityView(CapabilityView):
    """One capability."""

    @operation("capabilities_retrieve", answer=CapabilityDetailOutput)
    def get(self, request: Request, capability: str) -> Beside:
        """Read a capability with its files and versions."""
        return self.opened(capability)

    @operation("capabilities_update", body=CapabilityPatch, answer=CapabilityDetailOutput)
    def patch(self, request: Request, capability: str) -> Beside:
        """Change a capability: a new version with these parts changed, to be approved anew where it asks for something."""
        found = self.find(capability)
        sent = request.data
        if isinstance(sent, dict) and sent.get("name") not in (None, found.name):
            raise InvalidInput(
                "A capability keeps its name. Make a new one instead.", code="fixed", field="name"
            )
        parts = self.body(CapabilityPatch).draft_parts
        if not parts:
            raise InvalidInput("Nothing to change: give a part of it.", code="empty")
        capability_update(user_id=self.user_id, capability_id=found.pk, origin=self.origin, **parts)
        return self.opened(found.name)

    @operation("capabilities_delete", status=204)
    def delete(self, request: Request, capability: str) -> None:
        """Delete a capability with its versions, files and runs, for good."""
        capability_delete(user_id=self.user_id, capability_id=self.find(capability).pk)


class EnableView(CapabilityView):
    """Into use."""

    @operation("capabilities_enable", answer=CapabilityDetailOutput)
    def post(self, request: Request, capability: str) -> Beside:
        """Put a disabled or failed capability into use again."""
        return self.change(capability, capability_enable)


class DisableView(CapabilityView):
    """Out of use."""

    @operation("capabilities_disable", answer=CapabilityDetailOutput)
    def post(self, request: Request, capability: str) -> Beside:
        """Take a capability out of use."""
        return self.change(capability, capability_disable)


class ApproveView(CapabilityView):
    """The user's yes."""

    @operation("capabilities_approve", body=VersionInput, answer=CapabilityDetailOutput)
    def post(self, request: Request, capability: str) -> Beside:
        """Allow the hosts and secrets of the current version, or of `waiting_version`; 409 where `version` is neither.

        One that was built before it could be tried is tested next; it is in use when its examples have passed.
        """
        version = self.body(VersionInput).version
        return self.change(capability, capability_approve, version=version)


class RollbackView(CapabilityView):
    """The way back."""

    @operation("capabilities_rollback", body=VersionInput, answer=CapabilityDetailOutput)
    def post(self, request: Request, capability: str) -> Beside:
        """Make an earlier version the current one; without `version` the one before."""
        version = self.body(VersionInput).version
        return self.change(capability, capability_rollback, number=version)


class RunView(CapabilityView):
    """Running one."""

    @operation("capabilities_run", body=RunInput, answer=RunOutput)
    def post(self, request: Request, capability: str) -> Beside:
        """Run a capability in a fresh sandbox. 200 for every run that began, `ok` says how it ended."""
        found = self.find(capability)
        execution = async_to_sync(capability_execute)(
            user_id=self.user_id,
            name=found.name,
            args=self.body(RunInput).input or {},
            origin=RunOrigin(trigger=Trigger.API),
        )
        return run_seen(execution)


class ExecutionsView(CapabilityView):
    """Past runs."""

    @operation("capabilities_executions", answer=page_of("ExecutionPage", ExecutionOutput))
    def get(self, request: Request, capability: str) -> Listed:
        """The runs of a capability, newest first."""
        found = self.find(capability)
        executions_interrupt(user_id=self.user_id)
        return Listed(executions_of(found), lambda shown: map(run_seen, shown))


class ArchiveView(CapabilityView):
    """Taking one out."""

    @operation("capabilities_zip", described={"responses": ZIP})
    def get(self, request: Request, capability: str) -> HttpResponse:
        """The four files of the current version as a zip."""
        return archive_response(self.find(capability))


def _code(value: object, *, field: str) -> str:
    """Code as it came, but for what all of its lines are indented by."""
    clean_text(value, field=field, max_chars=MAX_CODE_CHARS, allow_empty=True)
    return dedent(str(value))


class CodeInput(OpenInput):
    code: Annotated[str, Checked(_code, {"type": "string", "maxLength": MAX_CODE_CHARS})]
    language: Literal["python"] = "python"


class CodeErrorOutput(Shape):
    code: str
    message: str


class CodeOutput(Shape):
    ok: bool
    stdout: str = Field(description="What it wrote; the value of its last line as a shell shows it.")
    error: CodeErrorOutput | None
    duration_ms: int


class CodeRunView(UserView):
    """`POST /run/`."""

    throttle_scope = "chat"

    @operation("code_run", body=CodeInput, answer=CodeOutput)
    def post(self, request: Request) -> Any:
        """Run Python once in a fresh sandbox without network and secrets. 200 for every run that began, `ok` says how it ended."""
        return async_to_sync(snippet_run)(user_id=self.user_id, code=self.body(CodeInput).code)


urlpatterns = [
    path("run/", CodeRunView.as_view(), name="code-run"),
    path("capabilities/", CapabilitiesView.as_view(), name="capabilities"),
    path(ONE, OneCapabilityView.as_view(), name="capability"),
    path(f"{ONE}run/", RunView.as_view(), name="capability-run"),
    path(f"{ONE}enable/", EnableView.as_view(), name="capability-enable"),
    path(f"{ONE}disable/", DisableView.as_view(), name="capability-disable"),
    path(f"{ONE}approve/", ApproveView.as_view(), name="capability-approve"),
    path(f"{ONE}rollback/", RollbackView.as_view(), name="capability-rollback"),
    path(f"{ONE}executions/", ExecutionsView.as_view(), name="capability-executions"),
    path(f"{ONE}zip/", ArchiveView.as_view(), name="capability-zip"),
]
