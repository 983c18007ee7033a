"""REST: `GET /usage/`."""

from datetime import UTC, datetime, timedelta
from typing import cast

from django.utils import timezone
from django.utils.dateparse import parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.models import User
from apps.agent.selectors import usage_summary
from apps.agent.serializers import UsageOutput
from apps.core.errors import InvalidInput

DEFAULT_DAYS = 30


class UsageView(APIView):
    """Tokens, calls and cost of the user."""

    @extend_schema(
        operation_id="usage",
        parameters=[
            OpenApiParameter("since", OpenApiTypes.DATETIME, description="Default: 30 days before `until`."),
            OpenApiParameter("until", OpenApiTypes.DATETIME, description="Default: now."),
        ],
        responses=UsageOutput,
    )
    def get(self, request: Request) -> Response:
        """What the models were used for between two times (a time without zone is UTC), and the tools beside."""
        until = _time(request, "until") or timezone.now()
        since = _time(request, "since") or _before(until)
        if since >= until:
            raise InvalidInput("`since` must lie before `until`.", field="since")
        summary = usage_summary(user_id=cast("User", request.user).pk, since=since, until=until)
        return Response({"since": since, "until": until} | summary)


def _before(until: datetime) -> datetime:
    return max(until, datetime(1, 2, 28, tzinfo=UTC)) - timedelta(days=DEFAULT_DAYS)


def _time(request: Request, name: str) -> datetime | None:
    given = request.query_params.get(name, "").strip()
    if not given:
        return None
    try:
        moment = parse_datetime(given.replace(" ", "+") if "T" in given else given)
        if moment is not None:
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise InvalidInput(f"`{name}` must be a time such as 2026-11-21T10:00:00Z.", field=name)
