"""REST: `GET /usage/`."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone
from rest_framework.request import Request

from apps.agent.selectors import usage_summary
from apps.agent.shapes import UsageOutput, UsageQuery
from apps.core.errors import InvalidInput
from apps.core.http.rest import UserView, operation

DEFAULT_DAYS = 30


class UsageView(UserView):
    """Tokens, calls and cost of the user."""

    @operation("usage", query=UsageQuery, answer=UsageOutput)
    def get(self, request: Request) -> dict[str, Any]:
        """Usage of models and tools between two times (a time without zone is UTC)."""
        given = self.query(UsageQuery)
        until = given.until or timezone.now()
        since = given.since or _before(until)
        if since >= until:
            raise InvalidInput("`since` must lie before `until`.", field="since")
        summary = usage_summary(user_id=self.user_id, since=since, until=until)
        return {"since": since, "until": until} | summary


def _before(until: datetime) -> datetime:
    return max(until, datetime(1, 2, 28, tzinfo=UTC)) - timedelta(days=DEFAULT_DAYS)
