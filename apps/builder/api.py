"""REST of builds: `/builds/` and what hangs on one."""

from typing import Any
from uuid import UUID

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request

from apps.accounts.credentials import event_stream, follow_check
from apps.core.rest_views import Answer, Described, Listed, UserView, operation
from apps.core.shapes import Beside, page_of

from . import services
from .events import build_stream
from .models import Build
from .selectors import build_get, builds_for
from .shapes import (
    BuildAnswerInput,
    BuildDetailOutput,
    BuilderMessageOutput,
    BuildInput,
    BuildOutput,
    BuildQuery,
    BuildRequestedOutput,
    BuildsQuery,
    build_opened,
    build_seen,
)

NO_INPUT: dict[str, Any] = {"type": "object", "properties": {}}
MAX_NUMBER = 2**31 - 1
SEEN = OpenApiParameter("Last-Event-ID", int, OpenApiParameter.HEADER, description="The newest number seen.")
EVENTS = OpenApiResponse(Described(BuilderMessageOutput), "Server-sent events, one message each.")


class BuildsView(UserView):
    """`GET POST /builds/`."""

    @operation("builds_list", query=BuildsQuery, answer=page_of("BuildPage", BuildOutput))
    def get(self, request: Request) -> Listed:
        """List builds, newest first."""
        rows = builds_for(self.user_id, **self.query(BuildsQuery).given)
        return Listed(rows, lambda shown: map(build_seen, shown))

    @operation("builds_create", body=BuildInput, answer=BuildRequestedOutput, status=(200, 202))
    def post(self, request: Request) -> Answer:
        """Have a capability built or changed. Answers at once; the build goes on by itself."""
        body = self.body(BuildInput)
        if body.capability is not None:
            build = services.build_change(
                user_id=self.user_id,
                name=body.capability,
                feedback=body.feedback or "",
                execution_id=body.execution,
            )
            return _answer("building", build.capability_id, build)
        requested = services.build_request(
            user_id=self.user_id,
            name=body.name,
            description=body.description,
            input_schema=NO_INPUT if body.input_schema is None else body.input_schema,
        )
        return _answer(requested.status, requested.capability.pk, requested.build)


class BuildView(UserView):
    """`GET /builds/{id}/`."""

    @operation("build_read", query=BuildQuery, answer=BuildDetailOutput)
    def get(self, request: Request, build_id: str) -> Beside:
        """Read a build with its messages, its transcript and what it used."""
        brief = not self.query(BuildQuery).transcript
        return build_opened(build_get(self.user_id, build_id), brief=brief)


class BuildEventsView(UserView):
    """`GET /builds/{id}/events/`: its messages as server-sent events."""

    @operation(
        "build_events",
        described={"parameters": [SEEN], "responses": {(200, "text/event-stream"): EVENTS}},
    )
    def get(self, request: Request, build_id: str) -> HttpResponseBase:
        """Follow a build as server-sent events. `Last-Event-ID` goes on where a connection broke off."""
        build = build_get(self.user_id, build_id)
        follow_check(self.user_id)
        after = _number(request.headers.get("Last-Event-ID", ""))
        return event_stream(request, build_stream(build.pk, after))


class BuildAnswerView(UserView):
    """`POST /builds/{id}/answer/`: the answer to a question, or yes or no to hosts."""

    @operation("build_answer", body=BuildAnswerInput, answer=BuildDetailOutput)
    def post(self, request: Request, build_id: str) -> Beside:
        """Answer what the builder asks, or allow or decline the hosts it wants."""
        body = self.body(BuildAnswerInput)
        services.build_answer(
            user_id=self.user_id,
            build_id=build_id,
            question_id=body.id,
            text=body.text,
            decision=body.decision,
        )
        return build_opened(build_get(self.user_id, build_id))


class BuildCancelView(UserView):
    """`POST /builds/{id}/cancel/`."""

    @operation("build_cancel", answer=BuildOutput, status=202)
    def post(self, request: Request, build_id: str) -> Beside:
        """Cancel a build that still goes on."""
        return build_seen(services.build_cancel(user_id=self.user_id, build_id=build_id))


class BuildRetryView(UserView):
    """`POST /builds/{id}/retry/`: the same once more."""

    @operation("build_retry", answer=BuildRequestedOutput, status=(200, 202))
    def post(self, request: Request, build_id: str) -> Answer:
        """Start a failed or cancelled build once more."""
        requested = services.build_retry(user_id=self.user_id, build_id=build_id)
        return _answer(requested.status, requested.capability.pk, requested.build)


def _answer(status: str, capability_id: UUID, build: Build | None) -> Answer:
    """202 where something is built, else 200."""
    value = {"status": status, "capability_id": capability_id, "build_id": build and build.pk}
    return Answer(value, 202 if build else 200)


def _number(text: str) -> int:
    """Reads the last event's id as a browser sends it; anything else begins from the start."""
    return min(int(text), MAX_NUMBER) if text.isascii() and text.isdigit() and len(text) < 20 else 0
