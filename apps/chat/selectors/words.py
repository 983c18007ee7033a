"""The words that the model reads in a conversation, as far as trust in its writes depends on them."""

from functools import partial
from uuid import UUID

from apps.agent.models import ToolCall
from apps.agent.taint import ConversationTaint
from apps.chat.models import Message, MessageKind, Role, Turn


def taint_of(user_id: UUID, conversation_id: UUID) -> ConversationTaint:
    """For the turns of this conversation; it asks the database when it is asked."""
    return ConversationTaint(
        user_id=user_id,
        conversation_id=conversation_id,
        messages=partial(user_messages, user_id, conversation_id),
        shown_untrusted=partial(shown_untrusted, user_id, conversation_id),
    )


def user_messages(user_id: UUID, conversation_id: UUID) -> list[str]:
    """The user's texts in the conversation, answers to questions included, without those an edit or a retry replaced."""
    messages = Message.objects.owned_by(user_id).filter(
        conversation_id=conversation_id, role=Role.USER, kind=MessageKind.TEXT, superseded_by=None
    )
    texts = list(messages.exclude(text="").values_list("text", flat=True))
    asked = ToolCall.objects.owned_by(user_id).filter(conversation_id=conversation_id, name="ask_user")
    return texts + list(asked.exclude(answer="").values_list("answer", flat=True))


def shown_untrusted(user_id: UUID, conversation_id: UUID) -> bool:
    """Whether a note from an untrusted source was put beside a message of the conversation."""
    turns = Turn.objects.owned_by(user_id).filter(conversation_id=conversation_id).exclude(memories=[])
    return any(item.get("untrusted") for items in turns.values_list("memories", flat=True) for item in items)
