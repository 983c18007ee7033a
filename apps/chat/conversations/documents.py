"""Conversations as Markdown, for people and for other programs."""

from collections.abc import Iterator
from uuid import UUID

from apps.chat.conversations.messages import readable_messages
from apps.chat.conversations.selectors import conversation_get
from apps.chat.models import Conversation, Role
from apps.core.transfer import Document, file_name, front_matter, paged

AT_ONCE = 200


def conversation_documents(user_id: UUID) -> Iterator[Document]:
    """All conversations, each a file in the folder of its channel."""
    for conversation in paged(Conversation.objects.for_user(user_id).defer("tools"), 50):
        yield _document(conversation)


def conversation_document(user_id: UUID, conversation_id: UUID) -> Document:
    """One conversation; NotFound for one that is not the user's."""
    return _document(conversation_get(user_id, conversation_id))


def _document(conversation: Conversation) -> Document:
    day = conversation.created_at.date().isoformat()
    name = file_name(conversation.title or "Conversation", conversation.id)
    channel = file_name(conversation.channel, conversation.id).rpartition(" (")[0]
    path = f"conversations/{channel}/{day} {name}.md"
    return Document(path, _parts(conversation), conversation.updated_at)


def _parts(conversation: Conversation) -> Iterator[str]:
    yield front_matter(
        id=str(conversation.id),
        title=conversation.title,
        channel=conversation.channel,
        session=conversation.session,
        created=conversation.created_at,
        updated=conversation.updated_at,
    )
    yield f"# {conversation.title or 'Conversation'}\n"
    position = 0
    while True:
        rows = readable_messages(conversation).filter(position__gt=position)
        some = list(
            rows.select_related(None).only("position", "role", "speaker", "text", "created_at")[:AT_ONCE]
        )
        if not some:
            return
        for message in some:
            if message.text:
                plain = "You" if message.role == Role.USER else "Izzy"
                named = message.speaker not in {"", Role.USER, Role.ASSISTANT}
                who = " ".join(message.speaker.split()) if named else plain
                yield f"\n## {who} · {message.created_at:%Y-%m-%d %H:%M} UTC\n\n{message.text}\n"
        position = some[-1].position
