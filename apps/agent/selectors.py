"""Reads of the agent: tool calls of a turn, whether others' words were read, usage and cost."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import not_
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet, Sum
from django.db.models.functions import TruncDate
from pydantic import Field

from apps.agent.model.client import Usage
from apps.agent.models import ModelCall, ToolCall
from apps.core.db.prepared import prepared
from apps.core.http.shapes import Shape
from apps.core.quotes import own_words, quotes_others
from apps.core.registries import Registry

TOTALS = {
    "calls": Count("pk"),
    "failed": Count("pk", filter=~Q(error_code__in=("", ModelCall.CANCELLED))),
    "input_tokens": Sum("input_tokens", default=0),
    "output_tokens": Sum("output_tokens", default=0),
    "cache_read_tokens": Sum("cache_read_tokens", default=0),
    "cache_write_tokens": Sum("cache_write_tokens", default=0),
    "cost_usd": Sum("cost_usd", default=0),
}

NO_FAILURES = ("declined", "stopped", "interrupted", "failed", "superseded", "not_allowed")
"""Error codes of calls that were not run, or broken off, through no fault of the tool's."""


class ToolCallOutput(Shape):
    """A call that has ended, as an answer names it."""

    id: UUID
    name: str
    input: dict[str, Any]
    result: str
    is_error: bool
    duration_ms: int
    server: bool = Field(
        False,
        exclude_if=not_,
        description="Set (and true) for a tool that the model's endpoint ran itself, else missing.",
    )


def toolcalls_undecided(*, user_id: UUID, turn_id: UUID) -> list[ToolCall]:
    """The calls for which the turn still waits; resume it when this is empty."""
    waiting = ToolCall.objects.owned_by(user_id).filter(turn_id=turn_id, state=ToolCall.State.WAITING)
    return list(waiting.filter(decision="").order_by("round", "position"))


def toolcalls_of(*, user_id: UUID, turn_ids: Collection[UUID]) -> list[ToolCall]:
    """All calls of these turns in the order they were made."""
    return list(
        ToolCall.objects.owned_by(user_id)
        .filter(turn_id__in=turn_ids)
        .order_by("turn_id", "round", "position")
    )


@dataclass(frozen=True, slots=True)
class UntrustedSource:
    """Others' words that reach the model by other ways than results of tools: any in a conversation, and in which of some."""

    conversation: Callable[[UUID, UUID], Collection[UUID]]
    conversations: Callable[[UUID, list[UUID]], Collection[UUID]]


untrusted_sources: Registry[UntrustedSource] = Registry()


def conversation_untrusted(*, user_id: UUID, conversation_id: UUID) -> bool:
    """Whether the model read in this conversation what others wrote. It stays so: later turns see it, or a summary."""
    return bool(_untrusted_calls(user_id, conversation_id)) or any(
        source.conversation(user_id, conversation_id) for source in untrusted_sources.values()
    )


def conversations_untrusted(*, user_id: UUID, conversation_ids: Collection[UUID]) -> set[UUID]:
    """The same for several at once: those in which it did."""
    ids, sources = list(conversation_ids), untrusted_sources.values()
    found = {key for key in _read_untrusted(user_id, ids) if key is not None}
    return found.union(*(source.conversations(user_id, ids) for source in sources))


@prepared
def _read_untrusted(user_id: UUID, conversation_ids: list[UUID]) -> QuerySet[ToolCall, UUID | None]:
    read = ToolCall.objects.owned_by(user_id).filter(
        conversation_id__among=conversation_ids, untrusted=True
    )
    return read.order_by().values_list("conversation_id", flat=True).distinct()


@prepared
def _untrusted_calls(user_id: UUID, conversation_id: UUID) -> QuerySet[ToolCall, UUID]:
    rows = ToolCall.objects.owned_by(user_id).filter(conversation_id=conversation_id, untrusted=True)
    return rows.values_list("pk", flat=True)[:1]


def turn_tool_calls(*, user_id: UUID, turn_id: UUID) -> list[dict[str, Any]]:
    """The calls of the turn that have ended, in order, as a `Response` names them."""
    ended = ToolCall.objects.owned_by(user_id).filter(turn_id=turn_id, state=ToolCall.State.DONE)
    return [ToolCallOutput.dump(row) for row in ended.order_by("round", "position")]


def turn_usage(*, user_id: UUID, turn_id: UUID) -> Usage:
    """Tokens and cost of the turn so far."""
    calls = ModelCall.objects.owned_by(user_id).filter(ModelCall.BY_A_MODEL, turn_id=turn_id)
    found = calls.aggregate(**TOTALS)
    del found["failed"]
    return Usage(**found | {"cost_usd": float(found["cost_usd"])})


def usage_summary(*, user_id: UUID, since: datetime, until: datetime) -> dict[str, Any]:
    """`{total, by_day, by_purpose, by_model, tools}` of `since <= created_at < until`; offline answers count for nothing.

    Each holds `{calls, failed, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd}`, the
    lists with their key beside; days are those of UTC. `tools` are `{name, calls, failed}`, most used first.
    """
    period = Q(created_at__gte=since, created_at__lt=until)
    calls = ModelCall.objects.for_user(user_id).filter(ModelCall.BY_A_MODEL, period).order_by()
    days = calls.annotate(day=TruncDate("created_at"))
    tools = ToolCall.objects.for_user(user_id).filter(period).order_by().values("name")
    failed = Count("pk", filter=Q(is_error=True) & ~Q(error_code__in=NO_FAILURES))
    counted = tools.annotate(calls=Count("pk"), failed=failed)
    return {
        "total": _money(calls.aggregate(**TOTALS)),
        "by_day": _grouped(days, "day"),
        "by_purpose": _grouped(calls, "purpose"),
        "by_model": _grouped(calls, "model"),
        "tools": list(counted.order_by("-calls", "name")),
    }


def _grouped(calls: QuerySet[ModelCall], key: str) -> list[dict[str, Any]]:
    return [_money(row) for row in calls.values(key).annotate(**TOTALS).order_by(key)]


def _money(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"cost_usd": float(row["cost_usd"])}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationTaint:
    """The words that the model reads in a conversation. Synchronous; ask when deciding, since tools add to it."""

    user_id: UUID
    conversation_id: UUID | None = None
    messages: Callable[[], Sequence[str]] = tuple  # what the user said there
    shown_untrusted: Callable[[], bool] = bool  # whether an untrusted note was brought up

    @property
    def is_tainted(self) -> bool:
        """Whether others' words are among it: of a tool, quoted by the user, or in a note that was brought up."""
        key = self.conversation_id
        if key is not None and conversation_untrusted(user_id=self.user_id, conversation_id=key):
            return True
        return self.shown_untrusted() or any(map(quotes_others, self.messages()))

    def own(self) -> list[str]:
        """The user's messages without what they quote of others."""
        return [own_words(text) for text in self.messages()]
