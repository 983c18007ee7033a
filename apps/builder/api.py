"""REST of builds: `/builds/` and what hangs on one, its messages as server-sent events among it."""

import time
from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID

from django.http import HttpResponseBase
from django.urls import path
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from apps.accounts.credentials import event_stream, follow_check, server_sent
from apps.builder.builds.messages import BUILDS
from apps.builder.builds.requesting import Requested, build_change, build_request, build_retry
from apps.builder.builds.running import build_answer, build_cancel
from apps.builder.builds.selectors import build_get, builds_for, messages_after
from apps.builder.models import Build, BuilderMessage
from apps.builder.shapes import (
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
from apps.core.db.pool import in_db
from apps.core.http.rest import Answer, Listed, UserView, event_stream_of, operation
from apps.core.http.shapes import Beside, page_of
from apps.core.jobs.bus import Signal

POLL_SECONDS = 0.3
KEEP_ALIVE_SECONDS = 15.0
NO_INPUT: dict[str, Any] = {"type": "object", "properties": {}}
MAX_NUMBER = 2**31 - 1
SEEN = OpenApiParameter(
    "Last-Event-ID",
    str,
    OpenApiParameter.HEADER,
    description="The newest number seen; what is none begins from the start.",
)
EVENTS = event_stream_of("BuilderMessageOutput", "Server-sent events, one message each.")


async def build_stream(build_id: UUID, after: int) -> AsyncGenerator[bytes, None]:
    """Every message above the number `after`, then each as it comes, until the build has ended and all were sent.

    `id` is a message's number, so that a reader that comes again with `Last-Event-ID` misses nothing and gets nothing twice.
    """
    news = Signal(BUILDS, lambda item: item[0] == str(build_id))
    sent_at = time.monotonic()
    try:
        while True:
            found = await in_db(_news, build_id, after)
            if found is None:
                return
            messages, over = found
            for message in messages:
                after = message.number
                yield server_sent(
                    {"build": str(build_id), **BuilderMessageOutput.dump(message)}, message.number
                )
            if over:
                return
            if messages:
                sent_at = time.monotonic()
            elif time.monotonic() - sent_at >= KEEP_ALIVE_SECONDS:
                sent_at = time.monotonic()
                yield b": still here\n\n"
            await news.wait(POLL_SECONDS)
    finally:
        news.close()


def _news(build_id: UUID, after: int) -> tuple[list[BuilderMessage], bool] | None:
    """Read in this order: a build that is over has no message that comes later."""
    build = Build.objects.unscoped().filter(pk=build_id).first()
    if build is None:
        return None
    return messages_after(build, after), not build.is_open


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
            build = build_change(
                user_id=self.user_id,
                name=body.capability,
                feedback=body.feedback or "",
                execution_id=body.execution,
            )
            return _answer(Requested(build.capability, build))
        requested = build_request(
            user_id=self.user_id,
            name=body.name,
            description=body.description,
            input_schema=NO_INPUT if body.input_schema is None else body.input_schema,
        )
        return _answer(requested)


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
        seen = request.headers.get(
            "Last-Event-ID", ""
        )  # as a browser sends it; else it begins from the start
        after = min(int(seen), MAX_NUMBER) if seen.isascii() and seen.isdigit() and len(seen) < 20 else 0
        return event_stream(request, build_stream(build.pk, after))


class BuildAnswerView(UserView):
    """`POST /builds/{id}/answer/`: the answer to a question, or yes or no to hosts."""

    @operation("build_answer", body=BuildAnswerInput, answer=BuildDetailOutput)
    def post(self, request: Request, build_id: str) -> Beside:
        """Answer what the builder asks, or allow or decline the hosts it wants."""
        body = self.body(BuildAnswerInput)
        build_answer(
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
        return build_seen(build_cancel(user_id=self.user_id, build_id=build_id))


class BuildRetryView(UserView):
    """`POST /builds/{id}/retry/`: the same once more."""

    @operation("build_retry", answer=BuildRequestedOutput, status=(200, 202))
    def post(self, request: Request, build_id: str) -> Answer:
        """Start a failed or cancelled build once more."""
        return _answer(build_retry(user_id=self.user_id, build_id=build_id))


def _answer(requested: Requested) -> Answer:
    """202 where something is built, else 200."""
    status, capability, build = requested.status, requested.capability, requested.build
    value = {"status": status, "capability_id": capability.pk, "build_id": build and build.pk}
    return Answer(value, 202 if build else 200)


urlpatterns = [
    path("builds/", BuildsView.as_view()),
    path("builds/<str:build_id>/", BuildView.as_view()),
    path("builds/<str:build_id>/events/", BuildEventsView.as_view()),
    path("builds/<str:build_id>/answer/", BuildAnswerView.as_view()),
    path("builds/<str:build_id>/cancel/", BuildCancelView.as_view()),
    path("builds/<str:build_id>/retry/", BuildRetryView.as_view()),
]
