"""Figures about a user's chats."""

from typing import Any
from uuid import UUID

from django.db.models import Count

from apps.chat.models import Conversation, Message, MessageKind, Role, Turn


def chat_stats(user_id: UUID) -> dict[str, Any]:
    """`{conversations: {channel: n}, messages: {role: n}, turns: {state: n}}`."""
    channels = Conversation.objects.for_user(user_id).values_list("channel").annotate(n=Count("id"))
    said = Message.objects.for_user(user_id).filter(kind=MessageKind.TEXT, superseded_by=None)
    roles = dict(said.values_list("role").annotate(n=Count("id")).order_by())
    states = Turn.objects.for_user(user_id).values_list("state").annotate(n=Count("id")).order_by()
    return {
        "conversations": dict(channels.order_by("channel")),
        "messages": {role: roles.get(role, 0) for role in Role.values},
        "turns": dict(states),
    }
