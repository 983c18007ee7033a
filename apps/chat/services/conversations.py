"""Writes of conversations themselves."""

from uuid import UUID

from django.db import transaction

from apps.accounts.selectors import preferences_for
from apps.agent.models import ToolCall
from apps.chat.models import Conversation, Message
from apps.chat.selectors.conversations import conversation_get
from apps.core.text import clean_text
from apps.memory.capture.services import conversation_withdraw
from apps.search.documents import Source
from apps.search.services import documents_remove

MAX_TITLE = 200


@transaction.atomic
def conversation_create(*, user_id: UUID, title: object = "", use_memory: bool | None = None) -> Conversation:
    """An empty conversation; `use_memory=None` takes the user's preference. InvalidInput, TooLarge for the title."""
    named = clean_text(title, field="title", max_chars=MAX_TITLE, allow_empty=True)
    if use_memory is None:
        use_memory = preferences_for(user_id).use_memory
    return Conversation.objects.create(
        user_id=user_id, title=" ".join(named.split()), title_by_user=bool(named), use_memory=use_memory
    )


@transaction.atomic
def conversation_rename(*, user_id: UUID, conversation_id: object, title: object) -> Conversation:
    """Gives the conversation a title of the user's own, which Izzy then leaves alone."""
    conversation = conversation_get(user_id, conversation_id)
    conversation.title = " ".join(clean_text(title, field="title", max_chars=MAX_TITLE).split())
    conversation.title_by_user = True
    conversation.save(update_fields=["title", "title_by_user"])
    return conversation


@transaction.atomic
def conversation_delete(*, user_id: UUID, conversation_id: object) -> None:
    """Deletes the conversation with its messages, turns, events, tool calls, passages and what waits to be read of it.

    A turn that runs in it ends at its next write.
    """
    conversation = conversation_get(user_id, conversation_id)
    messages = Message.objects.owned_by(user_id).filter(conversation=conversation)
    documents_remove(
        user_id=user_id,
        source=Source.CONVERSATION,
        source_ids=list(messages.values_list("id", flat=True)),
    )
    ToolCall.objects.owned_by(user_id).filter(conversation_id=conversation.id).delete()
    conversation_withdraw(user_id=user_id, conversation_id=conversation.id)
    conversation.delete()
