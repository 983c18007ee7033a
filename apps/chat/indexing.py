"""Messages as documents of search."""

from apps.chat.models import Message
from apps.search.documents import Document, Source


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
