"""REST of what is done with a capability: running it, looking at past runs, taking it out."""

from asgiref.sync import async_to_sync
from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse
from rest_framework.request import Request

from apps.core.rest_views import Listed, operation
from apps.core.shapes import Beside, page_of

from .api_base import CapabilityView, archive_response
from .execution import capability_execute
from .models import Trigger
from .selectors import executions_of
from .services.runs import Place, executions_interrupt
from .shapes import ExecutionOutput, RunInput, RunOutput, run_seen

ZIP = {(200, "application/zip"): OpenApiResponse(OpenApiTypes.BINARY, "The four files.")}


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
            place=Place(trigger=Trigger.API),
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
