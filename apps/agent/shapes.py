"""Shapes of the REST interface."""

from datetime import date, datetime
from typing import Any
from uuid import UUID

from pydantic import Field

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


class ToolCallOutput(Shape):
    id: UUID
    name: str
    input: dict[str, Any]
    result: str
    is_error: bool
    duration_ms: int
    server: bool = Field(
        False,
        exclude_if=lambda value: not value,
        description="Set (and true) for a tool that the model's endpoint ran itself, else missing.",
    )
