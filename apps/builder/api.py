"""REST of builds: `/builds/` and what hangs on one."""

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.credentials import event_stream, follow_check
from apps.core.errors import InvalidInput
from apps.core.pagination import Pages
from apps.core.rest_views import UserView, page_of

from . import services
from .events import build_stream
from .output import build_detail_json, build_json
from .selectors import build_get, builds_for
from .serializers import (
    BuildAnswerInput,
    BuildDetailOutput,
    BuilderMessageOutput,
    BuildInput,
    BuildOutput,
    BuildQuery,
    BuildRequestedOutput,
    BuildsQuery,
)

NO_INPUT: dict[str, Any] = {"type": "object", "properties": {}}
MAX_NUMBER = 2**31 - 1


class BuilderView(UserView):
    """What the views of builds share."""

    def raw_body(self) -> dict[str, Any]:
        if not isinstance(self.request.data, dict):
            raise InvalidInput("The body must be a JSON object.", code="wrong_type")
        return self.request.data


class BuildsView(BuilderView):
    """`GET POST /builds/`."""

    @extend_schema(
        operation_id="builds_list",
        parameters=[BuildsQuery],
        responses=page_of("BuildPage", BuildOutput(many=True)),
    )
    def get(self, request: Request) -> Response:
        """List builds, newest first."""
        rows = builds_for(self.user_id, **self.parameters(BuildsQuery))
        pages = Pages()
        page = pages.paginate_queryset(rows, request, view=self) or []
        return pages.get_paginated_response([build_json(build) for build in page])

    @extend_schema(
        operation_id="builds_create",
        request=BuildInput,
        responses={200: BuildRequestedOutput, 202: BuildRequestedOutput},
    )
    def post(self, request: Request) -> Response:
        """Have a capability built or changed. Answers at once; the build goes on by itself."""
        body = self.raw_body()
        if body.get("capability") is not None:
            build = services.build_change(
                user_id=self.user_id,
                name=body["capability"],
                feedback=body.get("feedback") or "",
                execution_id=body.get("execution"),
            )
            answer = {"status": "building", "capability_id": build.capability_id, "build_id": build.pk}
            return Response(answer, status=202)
        schema = NO_INPUT if body.get("input_schema") is None else body["input_schema"]
        if not isinstance(schema, dict):
            raise InvalidInput("input_schema must be an object.", code="wrong_type", field="input_schema")
        requested = services.build_request(
            user_id=self.user_id,
            name=body.get("name"),
            description=body.get("description"),
            input_schema=schema,
        )
        return _requested(requested)


class BuildView(BuilderView):
    """`GET /builds/{id}/`."""

    @extend_schema(
        operation_id="build_read",
        parameters=[BuildQuery],
        responses=BuildDetailOutput,
    )
    def get(self, request: Request, build_id: str) -> Response:
        """Read a build with its messages, its transcript and what it used."""
        brief = not self.parameters(BuildQuery)["transcript"]
        return Response(build_detail_json(build_get(self.user_id, build_id), brief=brief))


class BuildEventsView(BuilderView):
    """`GET /builds/{id}/events/`: its messages as server-sent events."""

    @extend_schema(
        operation_id="build_events",
        parameters=[
            OpenApiParameter(
                "Last-Event-ID", int, OpenApiParameter.HEADER, description="The newest number seen."
            )
        ],
        responses={
            (200, "text/event-stream"): OpenApiResponse(
                BuilderMessageOutput, "Server-sent events, one message each."
            )
        },
    )
    def get(self, request: Request, build_id: str) -> HttpResponseBase:
        """Follow a build as server-sent events. `Last-Event-ID` goes on where a connection broke off."""
        build = build_get(self.user_id, build_id)
        follow_check(self.user_id)
        after = _number(request.headers.get("Last-Event-ID", ""))
        return event_stream(request, build_stream(build.pk, after))


class BuildAnswerView(BuilderView):
    """`POST /builds/{id}/answer/`: the answer to a question, or yes or no to hosts."""

    @extend_schema(operation_id="build_answer", request=BuildAnswerInput, responses=BuildDetailOutput)
    def post(self, request: Request, build_id: str) -> Response:
        """Answer what the builder asks, or allow or decline the hosts it wants."""
        body = self.raw_body()
        services.build_answer(
            user_id=self.user_id,
            build_id=build_id,
            question_id=body.get("id"),
            text=body.get("text"),
            decision=body.get("decision"),
        )
        return Response(build_detail_json(build_get(self.user_id, build_id)))


class BuildCancelView(BuilderView):
    """`POST /builds/{id}/cancel/`."""

    @extend_schema(operation_id="build_cancel", request=None, responses={202: BuildOutput})
    def post(self, request: Request, build_id: str) -> Response:
        """Cancel a build that still goes on."""
        build = services.build_cancel(user_id=self.user_id, build_id=build_id)
        return Response(build_json(build), status=202)


class BuildRetryView(BuilderView):
    """`POST /builds/{id}/retry/`: the same once more."""

    @extend_schema(
        operation_id="build_retry",
        request=None,
        responses={200: BuildRequestedOutput, 202: BuildRequestedOutput},
    )
    def post(self, request: Request, build_id: str) -> Response:
        """Start a failed or cancelled build once more."""
        return _requested(services.build_retry(user_id=self.user_id, build_id=build_id))


def _requested(requested: services.Requested) -> Response:
    answer = {
        "status": requested.status,
        "capability_id": requested.capability.pk,
        "build_id": requested.build.pk if requested.build else None,
    }
    return Response(answer, status=202 if requested.build else 200)


def _number(text: str) -> int:
    """What a browser sends back of the last event's id; anything else begins from the start."""
    return min(int(text), MAX_NUMBER) if text.isascii() and text.isdigit() and len(text) < 20 else 0
