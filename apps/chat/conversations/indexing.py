"""Messages as documents of search."""

import logging
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.chat.models import OPEN_STATES, Message, MessageKind
from apps.core.db.writing import precompute
from apps.search.documents import Document, Source
from apps.search.services import documents_index, documents_prepare

logger = logging.getLogger(__name__)
INDEX_BATCH = 500
UNINDEXED_AGE = timedelta(minutes=1)


def document_of(message: Message) -> Document:
    """The message as search knows it."""
    return Document(
        source=Source.CONVERSATION,
        source_id=message.id,
        text=message.text,
        happened_at=message.created_at,
        conversation_id=message.conversation_id,
        session=message.conversation.session,
        position=message.position,
        speaker=message.speaker,
        external_id=message.external_id,
    )


def turn_index(turn_id: UUID) -> None:
    """Makes what was said in the turn searchable, unless its conversation is one without memory."""
    rows = Message.objects.unscoped().filter(turn_id=turn_id, indexed=False)
    messages_index(list(rows.select_related("conversation")))


def messages_index(messages: list[Message]) -> None:
    """Writes the passages of these messages (of any users) and marks them as done.

    A long text is cut and read before the transaction, which would hold up everybody else's meanwhile.
    """
    by_user: dict[UUID, list[Document]] = {}
    for message in messages:
        documents = by_user.setdefault(message.user_id, [])
        if message.conversation.use_memory and message.superseded_by_id is None and message.text:
            documents.append(document_of(message))
    with precompute():
        for user_id, documents in by_user.items():
            documents_prepare(user_id=user_id, texts=[document.text for document in documents])
        with transaction.atomic():  # leaves out what was replaced or deleted meanwhile
            rows = Message.objects.unscoped().filter(id__in=[message.id for message in messages])
            there = set(rows.filter(superseded_by=None).values_list("id", flat=True))
            for user_id, documents in by_user.items():
                kept = [document for document in documents if document.source_id in there]
                documents_index(user_id=user_id, documents=kept)
            rows.update(indexed=True)


def messages_index_pending() -> None:
    """Sweep: indexes what a crash left out, of turns that have ended. A message that fails does not keep back others."""
    rows = (
        Message.objects.unscoped()
        .filter(indexed=False, kind=MessageKind.TEXT, created_at__lt=timezone.now() - UNINDEXED_AGE)
        .exclude(turn__state__in=OPEN_STATES)
        .select_related("conversation")
        .order_by("id")
    )
    batch = list(rows[:INDEX_BATCH])
    while batch:
        if not _indexed(batch):
            for message in batch:
                _indexed([message])
        batch = list(rows.filter(id__gt=batch[-1].id)[:INDEX_BATCH])


def _indexed(messages: list[Message]) -> bool:
    try:
        messages_index(messages)
    except Exception:  # whatever is wrong with one message, the others are to be found
        logger.exception("%d messages from %s on were not indexed", len(messages), messages[0].id)
        return False
    return True
