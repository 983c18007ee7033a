"""Tokens and cost of turns, from the usage ledger."""

from collections.abc import Collection, Iterable
from typing import Any
from uuid import UUID

from apps.agent.client import Usage
from apps.agent.models import ModelCall
from apps.agent.selectors import TOTALS

FIELDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd", "calls")


def usage_of_turns(user_id: UUID, turn_ids: Collection[UUID]) -> dict[UUID, Usage]:
    """The usage of each turn, all purposes together (the answer, its title, searches of deep memory)."""
    calls = ModelCall.objects.owned_by(user_id).filter(ModelCall.BY_A_MODEL, turn_id__in=turn_ids).order_by()
    totals: dict[str, Any] = {name: TOTALS[name] for name in FIELDS}
    rows: Iterable[Any] = calls.values("turn_id").annotate(**totals)
    return {row["turn_id"]: _usage(row) for row in rows}


def _usage(row: dict[str, Any]) -> Usage:
    return Usage(**{name: row[name] for name in FIELDS} | {"cost_usd": float(row["cost_usd"])})
