"""Takes in conversations that were held elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.agent.canonical import canonical_json
from apps.chat.capturing import conversation_capture
from apps.chat.indexing import document_of
from apps.chat.models import Conversation, Message, Role
from apps.chat.services.ingest_input import (
    TOOL_ROLES,
    IngestedMessage,
    channel_checked,
    messages_checked,
    messages_listed,
    role_of,
    session_checked,
)
from apps.core.beforehand import beforehand, once
from apps.memory.capture.segments import pieces_of
from apps.search.services import documents_index, documents_prepare


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingestion:
    """The result of an ingestion."""

    conversation_id: UUID
    added: list[UUID]  # ids of the new messages, in order
    repeated: int  # had come before
    skipped: int = 0  # roles system, developer, tool, function


def messages_ingest(
    *, user_id: UUID, session: object, messages: object, channel: object = None, extract: bool = True
) -> Ingestion:
    """Adds messages to the session's conversation, searchable when it returns; ones with a known `external_id` are left.

    `messages` is a list of at most 1,000 objects `{role or speaker, content, external_id?, created_at?}`. `session`
    names the conversation within its `channel`; "chat" is Izzy's own and refused. A time without zone is UTC.
    Messages with a role of SKIPPED_ROLES are left out. With `extract` the others wait at once to be read for what is
    worth remembering; what an assistant says after tool output in the same call counts as others' words.
    InvalidInput (with `field`), TooLarge.
    """
    channel_name, session_name = channel_checked(channel), session_checked(session)
    given = messages_listed(messages)
    checked = messages_checked(given)
    after_tools = any(role_of(entry) in TOOL_ROLES for entry in given)
    with beforehand():
        _prepare(user_id, channel_name, session_name, checked)
        conversation_id, added = _store(
            user_id, channel_name, session_name, checked, extract=extract, after_tools=after_tools
        )
    return Ingestion(
        conversation_id=conversation_id,
        added=added,
        repeated=len(checked) - len(added),
        skipped=len(given) - len(checked),
    )


def _prepare(user_id: UUID, channel: str, session: str, messages: Sequence[IngestedMessage]) -> None:
    """Reads the new messages before the transaction begins: writing them takes a twentieth of the time."""
    known = Conversation.objects.for_user(user_id).filter(channel=channel, session=session).first()
    fresh = _fresh(known, messages)
    documents_prepare(user_id=user_id, texts=[message.content for message in fresh])
    for message in fresh:
        once(pieces_of, message.content, message.role == Role.USER)


@transaction.atomic
def _store(
    user_id: UUID,
    channel: str,
    session: str,
    messages: Sequence[IngestedMessage],
    *,
    extract: bool,
    after_tools: bool,
) -> tuple[UUID, list[UUID]]:
    """The conversation and the ids of the new messages."""
    gone = Conversation.objects.unscoped().filter(user_id=user_id, channel=channel, session=session)
    gone.exclude(deleted_at=None).update(session="")  # of one that is being deleted its name is free
    conversation = _conversation(user_id, channel, session, messages)
    rows = _rows(conversation, _fresh(conversation, messages))
    Message.objects.bulk_create(rows, batch_size=500)
    documents_index(user_id=user_id, documents=[document_of(row) for row in rows])
    conversation_capture(conversation, rows, extract=extract, at_once=True, after_tools=after_tools)
    return conversation.id, [row.id for row in rows]


def _conversation(
    user_id: UUID, channel: str, session: str, messages: Sequence[IngestedMessage]
) -> Conversation:
    """The session's conversation, locked, made when it is new."""
    times = [message.created_at for message in messages] or [timezone.now()]
    conversation, created = (
        Conversation.objects.unscoped()
        .select_for_update()
        .get_or_create(
            user_id=user_id,
            channel=channel,
            session=session,
            defaults={
                "title": session,
                "title_by_user": True,
                "created_at": min(times),
                "updated_at": max(times),
            },
        )
    )
    if not created and max(times) > conversation.updated_at:
        conversation.updated_at = max(times)
        conversation.save(update_fields=["updated_at"])
    return conversation


def _fresh(conversation: Conversation | None, messages: Sequence[IngestedMessage]) -> list[IngestedMessage]:
    """The messages whose external ids are new, each id once."""
    asked = {message.external_id for message in messages if message.external_id}
    seen: set[str] = set()
    if conversation is not None and asked:
        known = conversation.messages.filter(external_id__in=asked)
        seen = set(known.values_list("external_id", flat=True))
    fresh = []
    for message in messages:
        if message.external_id and message.external_id in seen:
            continue
        seen.add(message.external_id)
        fresh.append(message)
    return fresh


def _rows(conversation: Conversation, messages: Sequence[IngestedMessage]) -> list[Message]:
    first = conversation.last_position + 1
    conversation.last_position += len(messages)
    conversation.save(update_fields=["last_position"])
    return [
        Message(
            user_id=conversation.user_id,
            conversation=conversation,
            position=first + index,
            role=message.role,
            blocks=canonical_json([{"type": "text", "text": message.content}]),
            text=message.content,
            speaker=message.speaker,
            external_id=message.external_id,
            indexed=True,
            captured=True,
            created_at=message.created_at,
        )
        for index, message in enumerate(messages)
    ]
