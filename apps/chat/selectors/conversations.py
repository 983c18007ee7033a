"""Reads of conversations: one, or a page of them."""

from collections.abc import Collection
from uuid import UUID

from django.db.models import Count, QuerySet

from apps.chat.models import Conversation, Message, MessageKind
from apps.core.errors import NotFound
from apps.core.ids import parse_id

CHAT_CHANNEL = "chat"
PAGE_SIZE = 40


def conversation_get(user_id: UUID, conversation_id: object) -> Conversation:
    """The user's conversation. NotFound for a foreign, unknown or malformed id."""
    found = Conversation.objects.for_user(user_id).filter(id=parse_id(conversation_id)).first()
    if found is None:
        raise NotFound("There is no conversation with this id.")
    return found


def conversation_belongs(user_id: UUID, conversation_id: UUID) -> bool:
    """Whether there is such a conversation of this user."""
    return Conversation.objects.for_user(user_id).filter(id=conversation_id).exists()


def conversations_for(user_id: UUID, *, channel: str | None = CHAT_CHANNEL) -> QuerySet[Conversation]:
    """The user's conversations, newest activity first; `channel=None` gives those of programs too.

    Without the definitions of their tools, some 30 KB each, which no list shows.
    """
    found = Conversation.objects.for_user(user_id).defer("tools").order_by("-updated_at", "-id")
    return found if channel is None else found.filter(channel=channel)


def conversations_page(
    user_id: UUID, number: int = 1, *, first: int | None = None
) -> tuple[list[Conversation], bool]:
    """A page of the sidebar's list, counted from 1, with those from `first` on before it, and whether there are more."""
    begin, end = ((first or number) - 1) * PAGE_SIZE, number * PAGE_SIZE
    rows = list(conversations_for(user_id)[begin : end + 1])
    return rows[: end - begin], len(rows) > end - begin


def messages_counted(user_id: UUID, conversation_ids: Collection[UUID]) -> dict[UUID, int]:
    """How many messages a reader of each of these conversations of the user sees; none where there are none.

    To be asked for one page of them: the messages are counted one by one.
    """
    rows = Message.objects.owned_by(user_id).filter(
        conversation_id__in=conversation_ids, kind=MessageKind.TEXT, superseded_by=None
    )
    return dict(rows.exclude(text="").order_by().values_list("conversation_id").annotate(Count("id")))
