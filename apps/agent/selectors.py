"""Reads of the agent: tool calls of a turn, usage and cost."""

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.agent.client import Usage
from apps.agent.models import ToolCall


def toolcalls_undecided(*, user_id: UUID, turn_id: UUID) -> list[ToolCall]:
    """The calls for which the turn still waits; resume it when this is empty."""
    raise NotImplementedError


def toolcalls_of(*, user_id: UUID, turn_ids: Collection[UUID]) -> list[ToolCall]:
    """All calls of these turns in the order they were made."""
    raise NotImplementedError


def turn_usage(*, user_id: UUID, turn_id: UUID) -> Usage:
    """Tokens and cost of the turn so far."""
    raise NotImplementedError


def usage_summary(*, user_id: UUID, since: datetime, until: datetime) -> dict[str, Any]:
    """Totals, and the same by day, by purpose and by model, of `since <= created_at < until`."""
    raise NotImplementedError
