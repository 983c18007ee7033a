"""Conversations in which something is to be done, as their rows say."""

from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from apps.agent.models import ToolCall
from apps.chat.models import OPEN_STATES, Conversation, Turn, TurnState

RESCUE_AGE = timedelta(seconds=2)

_OPEN = Q(state__in=OPEN_STATES)


def conversations_with_wishes(conversation_ids: Collection[UUID]) -> list[UUID]:
    """Those among them in which another process has queued or stopped something."""
    rows = Turn.objects.unscoped().filter(conversation_id__in=conversation_ids)
    wishes = Q(announced=False) | (_OPEN & Q(stop_requested=True))
    return list(rows.filter(wishes).order_by().values_list("conversation_id", flat=True).distinct())


def conversations_left() -> list[UUID]:
    """Conversations that nobody runs although there is something to do in them. A turn from the future is from before the
    clock was set back."""
    now = timezone.now()
    at_rest = Q(created_at__lt=now - RESCUE_AGE) | Q(created_at__gt=now)
    turns = Turn.objects.unscoped().filter(Conversation.lease_free("conversation__"), _OPEN, at_rest)
    due = Q(state__in=[TurnState.QUEUED, TurnState.RUNNING]) | Q(stop_requested=True)
    found = set(turns.filter(due).values_list("conversation_id", flat=True))
    waiting = dict(turns.filter(state=TurnState.WAITING).values_list("id", "conversation_id"))
    if waiting:
        undecided = ToolCall.objects.unscoped().filter(
            turn_id__in=waiting, state=ToolCall.State.WAITING, decision=""
        )
        still = set(undecided.values_list("turn_id", flat=True))
        found |= {conversation_id for turn_id, conversation_id in waiting.items() if turn_id not in still}
    return list(found)
