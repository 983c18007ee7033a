"""REST of what is done with a capability: running it, looking at past runs, taking it out."""

from typing import Any

from asgiref.sync import async_to_sync
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.errors import InvalidInput
from apps.core.pagination import Pages
from apps.core.rest_views import page_of

from .api_base import CapabilityView, archive_response
from .execution import capability_execute
from .inputs import body_of
from .models import Trigger
from .output import execution_json, run_json
from .selectors import executions_of
from .serializers import ExecutionOutput, RunInput, RunOutput
from .services.runs import Place, executions_interrupt


@extend_schema(tags=["capabilities"])
class RunView(CapabilityView):
    """Running one."""

    @extend_schema(operation_id="capabilities_run", request=RunInput, responses=RunOutput)
    def post(self, request: Request, capability: str) -> Response:
        """Run a capability in a fresh sandbox. 200 for every run that began, `ok` says how it ended."""
        found = self.find(capability)
        args = body_of(request, ("input",)).get("input", {})
        if not isinstance(args, dict):
            raise InvalidInput("input must be a JSON object.", code="bad_input", field="input")
        execution = async_to_sync(capability_execute)(
            user_id=self.user_id, name=found.name, args=args, place=Place(trigger=Trigger.API)
        )
        return Response(run_json(execution))


@extend_schema(tags=["capabilities"])
class ExecutionsView(CapabilityView):
    """Past runs."""

    @extend_schema(
        operation_id="capabilities_executions",
        responses=page_of("ExecutionPage", ExecutionOutput(many=True)),
    )
    def get(self, request: Request, capability: str) -> Response:
        """The runs of a capability, newest first."""
        found = self.find(capability)
        executions_interrupt(user_id=self.user_id)
        pages = Pages()
        shown: list[Any] = pages.paginate_queryset(executions_of(found), request, view=self) or []
        return pages.get_paginated_response([execution_json(row) for row in shown])


@extend_schema(tags=["capabilities"])
class ArchiveView(CapabilityView):
    """Taking one out."""

    @extend_schema(
        operation_id="capabilities_zip",
        responses={(200, "application/zip"): OpenApiResponse(OpenApiTypes.BINARY, "The four files.")},
    )
    def get(self, request: Request, capability: str) -> HttpResponse:
        """The four files of the current version as a zip."""
        return archive_response(self.find(capability))
