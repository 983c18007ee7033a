"""REST: `GET /usage/`."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.utils import timezone
from pydantic import Field
from rest_framework.request import Request

from apps.agent.selectors import usage_summary
from apps.core.errors import InvalidInput
from apps.core.http.rest import UserView, operation
from apps.core.http.shapes import Query, Shape, TimeParameter


class UsageQuery(Query):
    since: TimeParameter | None = Field(None, description="Before `until`. Default: 30 days before it.")
    until: TimeParameter | None = Field(None, description="Default: now.")


class UsageTotals(Shape):
    calls: int
    failed: int
    input_tokens: int = Field(description="Neither read from nor written to the cache.")
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    cost_usd: float


class UsageOfDay(UsageTotals):
    day: date


class UsageOfPurpose(UsageTotals):
    purpose: str


class UsageOfModel(UsageTotals):
    model: str


class UsageOfTool(Shape):
    name: str
    calls: int
    failed: int


class UsageOutput(Shape):
    since: datetime
    until: datetime
    total: UsageTotals
    by_day: list[UsageOfDay]
    by_purpose: list[UsageOfPurpose]
    by_model: list[UsageOfModel]
    tools: list[UsageOfTool]


DEFAULT_DAYS = 30
EARLIEST = datetime(1, 2, 28, tzinfo=UTC)  # from which as many days can be taken away


class UsageView(UserView):
    """Tokens, calls and cost of the user."""

    @operation("usage", query=UsageQuery, answer=UsageOutput)
    def get(self, request: Request) -> dict[str, Any]:
        """Usage of models and tools between two times (a time without zone is UTC)."""
        given = self.query(UsageQuery)
        until = given.until or timezone.now()
        since = given.since or max(until, EARLIEST) - timedelta(days=DEFAULT_DAYS)
        if since >= until:
            raise InvalidInput("`since` must lie before `until`.", field="since")
        summary = usage_summary(user_id=self.user_id, since=since, until=until)
        return {"since": since, "until": until} | summary
