"""Deleting conversations: out of sight at once, gone slice by slice, so that nobody waits for a long one to be removed."""

from functools import partial
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.agent.models import ToolCall
from apps.chat.models import Conversation, Message, Turn, TurnEvent
from apps.chat.selectors.conversations import conversation_get
from apps.core.slices import SLICE, in_slices, rows_remove
from apps.memory.capture.services import conversation_withdraw
from apps.search.documents import Source
from apps.search.services import documents_remove


def conversation_delete(*, user_id: UUID, conversation_id: object) -> None:
    """Deletes the conversation with its messages, turns, events, tool calls, passages and what waits to be read of it.

    A turn that runs in it ends at its next write. What a crash leaves of it nobody sees, and a sweep removes.
    """
    conversation = conversation_get(user_id, conversation_id)
    _hide(user_id, conversation.id)
    in_slices(partial(_slice, user_id, conversation.id))


@transaction.atomic
def _hide(user_id: UUID, conversation_id: UUID) -> None:
    """From here on nobody finds the conversation, runs it or adds to it; its session's name is free for another one."""
    Conversation.objects.owned_by(user_id).filter(id=conversation_id).update(**_hidden())
    conversation_withdraw(user_id=user_id, conversation_id=conversation_id)


def _hidden() -> dict[str, object]:
    return {"deleted_at": timezone.now(), "runner": "", "lease_until": None, "session": ""}


@transaction.atomic
def _slice(user_id: UUID, conversation_id: UUID) -> bool:
    """Removes some of a hidden conversation; whether there may be more."""
    messages = Message.objects.unscoped().filter(conversation_id=conversation_id)
    said = list(messages.order_by("position").values_list("id", flat=True)[:SLICE])
    documents_remove(user_id=user_id, source=Source.CONVERSATION, source_ids=said)
    messages.filter(id__in=said).delete()
    return rows_remove(
        messages,
        TurnEvent.objects.filter(conversation_id=conversation_id),
        ToolCall.objects.unscoped().filter(conversation_id=conversation_id),
        Turn.objects.unscoped().filter(conversation_id=conversation_id),
        Conversation.objects.unscoped().filter(id=conversation_id),
        room=SLICE - len(said),
    )


def user_conversations_thin(user_id: UUID) -> bool:
    """Before an account goes: hides its conversations and removes some of what they hold; whether there may be more.

    Passages go with the account's index, files and all that is few with the account itself.
    """
    Conversation.objects.for_user(user_id).update(**_hidden())
    return rows_remove(
        Message.objects.unscoped().filter(user_id=user_id),
        TurnEvent.objects.filter(conversation__user_id=user_id),
        Turn.objects.unscoped().filter(user_id=user_id),
        Conversation.objects.unscoped().filter(user_id=user_id),
    )


def conversations_delete_pending() -> None:
    """Sweep: goes on where a crash left a deletion."""
    hidden = Conversation.objects.unscoped().exclude(deleted_at=None).order_by()
    for user_id, conversation_id in hidden.values_list("user_id", "id"):
        in_slices(partial(_slice, user_id, conversation_id))
