"""REST: `GET /usage/`."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.agent.selectors import usage_summary
from apps.agent.serializers import UsageOutput
from apps.core.errors import InvalidInput
from apps.core.rest_views import TimeParameter, UserView

DEFAULT_DAYS = 30


class UsageQuery(serializers.Serializer[Any]):
    since = TimeParameter(required=False, help_text="Before `until`. Default: 30 days before it.")
    until = TimeParameter(required=False, help_text="Default: now.")


class UsageView(UserView):
    """Tokens, calls and cost of the user."""

    @extend_schema(
        operation_id="usage",
        parameters=[UsageQuery],
        responses=UsageOutput,
    )
    def get(self, request: Request) -> Response:
        """What the models were used for between two times (a time without zone is UTC), and the tools beside."""
        given = self.parameters(UsageQuery)
        until = given.get("until") or timezone.now()
        since = given.get("since") or _before(until)
        if since >= until:
            raise InvalidInput("`since` must lie before `until`.", field="since")
        summary = usage_summary(user_id=self.user_id, since=since, until=until)
        return Response({"since": since, "until": until} | summary)


def _before(until: datetime) -> datetime:
    return max(until, datetime(1, 2, 28, tzinfo=UTC)) - timedelta(days=DEFAULT_DAYS)
