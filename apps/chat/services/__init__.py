"""Every write of the chat."""

from apps.chat.services.conversations import conversation_create, conversation_rename
from apps.chat.services.deletion import conversation_delete, conversation_hide, conversation_restore
from apps.chat.services.ingest import Ingestion, messages_ingest
from apps.chat.services.turns import (
    Sent,
    UserMessage,
    approval_decide,
    message_send,
    question_answer,
    turn_retry,
    turn_stop,
)

__all__ = [
    "Ingestion",
    "Sent",
    "UserMessage",
    "approval_decide",
    "conversation_create",
    "conversation_delete",
    "conversation_hide",
    "conversation_rename",
    "conversation_restore",
    "message_send",
    "messages_ingest",
    "question_answer",
    "turn_retry",
    "turn_stop",
]
