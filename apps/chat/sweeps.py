"""The worker's sweeps for the chat, whichever process crashed."""

import logging
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from apps.chat.log import LoggedEvent, events_store
from apps.chat.models import OPEN_STATES, Conversation, Turn, TurnEvent, TurnState
from apps.chat.runner.work import conversation_take, turn_interrupt

logger = logging.getLogger(__name__)

KEEP_EVENTS = timedelta(days=2)
"""How long after its end a turn's events can be replayed; then its messages and tool calls are what is left."""
PRUNE_BATCH = 200


def turns_interrupt() -> None:
    """Ends the turns that were running in a process whose lease has run out."""
    turns = Turn.objects.unscoped().filter(Conversation.lease_free("conversation__"), state=TurnState.RUNNING)
    for conversation_id in turns.values_list("conversation_id", flat=True).distinct():
        _interrupt(conversation_id)


@transaction.atomic
def _interrupt(conversation_id: UUID) -> None:
    numbers = conversation_take(conversation_id)
    if numbers is None:
        return
    seq = numbers.first
    for turn in Turn.objects.unscoped().filter(conversation_id=conversation_id, state=TurnState.RUNNING):
        events = [
            LoggedEvent(seq + index, line.turn_id, line.type, line.payload)
            for index, line in enumerate(turn_interrupt(turn))
        ]
        events_store(conversation_id, events)
        seq += len(events)
        logger.warning("turn %s was interrupted; what it had produced is kept", turn.id)
    Conversation.lease_release(conversation_id, stored_seq=seq - 1, last_seq=seq - 1)


def events_prune() -> None:
    """Removes the events of turns that ended long ago.

    It starts from the turns that have events, which are those of some days, and not from all that ever ended.
    """
    with_events = list(TurnEvent.objects.order_by().values_list("turn_id", flat=True).distinct())
    for start in range(0, len(with_events), PRUNE_BATCH):
        some = Turn.objects.unscoped().filter(id__in=with_events[start : start + PRUNE_BATCH])
        old = some.filter(ended_at__lt=timezone.now() - KEEP_EVENTS).exclude(state__in=OPEN_STATES)
        if ids := list(old.values_list("id", flat=True)):
            _prune(ids)


@transaction.atomic
def _prune(turn_ids: list[UUID]) -> None:
    events = TurnEvent.objects.filter(turn_id__in=turn_ids)
    for conversation_id, last in (
        events.values_list("conversation_id").annotate(last=Max("last_seq")).order_by()
    ):
        Conversation.objects.unscoped().filter(id=conversation_id, pruned_seq__lt=last).update(
            pruned_seq=last
        )
    events.delete()
