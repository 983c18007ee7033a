"""Takes in conversations that were held elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from apps.agent.canonical import canonical_json
from apps.chat.capturing import conversation_capture
from apps.chat.indexing import document_of
from apps.chat.models import Conversation, Message, Role
from apps.chat.selectors.conversations import CHAT_CHANNEL
from apps.core.beforehand import beforehand, once
from apps.core.errors import InvalidInput, TooLarge
from apps.core.text import clean_text
from apps.memory.capture.said import pieces_of
from apps.search.services import documents_index, documents_prepare

MAX_MESSAGES = 1000
MAX_CONTENT_CHARS = 100_000
MAX_SESSION_CHARS = 200
MAX_CHANNEL_CHARS = 64
MAX_SPEAKER_CHARS = 100
MAX_EXTERNAL_ID_CHARS = 200
DEFAULT_CHANNEL = "api"
YEARS = range(1900, 2201)
"""At the ends of the calendar no page could show a time in its reader's zone."""
SKIPPED_ROLES = frozenset({"system", "developer", "tool", "function"})
"""Roles of messages that nobody said: they are counted, not kept."""
TOOL_ROLES = frozenset({"tool", "function"})


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedMessage:
    """One message as it was said elsewhere, checked. `role` follows from `speaker` where none was given."""

    role: Role
    speaker: str
    content: str
    external_id: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingestion:
    """What came of it: `added` are the ids of the new messages, in order; `repeated` had come before; `skipped` were
    said by nobody (roles system, developer, tool, function)."""

    conversation_id: UUID
    added: list[UUID]
    repeated: int
    skipped: int = 0


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
    channel_name = clean_text(channel or DEFAULT_CHANNEL, field="channel", max_chars=MAX_CHANNEL_CHARS)
    if channel_name == CHAT_CHANNEL:
        raise InvalidInput("The channel “chat” is Izzy's own; choose another name.", field="channel")
    session_name = clean_text(session, field="session", max_chars=MAX_SESSION_CHARS)
    given = _listed(messages)
    checked = _checked(given)
    after_tools = any(_role(entry) in TOOL_ROLES for entry in given)
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
        once(pieces_of, message.content)


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
    conversation = _conversation(user_id, channel, session, messages)
    rows = _rows(conversation, _fresh(conversation, messages))
    Message.objects.bulk_create(rows, batch_size=500)
    documents_index(user_id=user_id, documents=[document_of(row) for row in rows])
    conversation_capture(conversation, rows, extract=extract, at_once=True, after_tools=after_tools)
    return conversation.id, [row.id for row in rows]


def _listed(messages: object) -> list[object]:
    if not isinstance(messages, list) or not messages:
        raise InvalidInput("messages must be a list with at least one message.", field="messages")
    if len(messages) > MAX_MESSAGES:
        raise TooLarge(f"At most {MAX_MESSAGES:,} messages per call.", field="messages", limit=MAX_MESSAGES)
    return messages


def _checked(messages: Sequence[object]) -> list[IngestedMessage]:
    now = timezone.now()
    return [
        _message(entry, f"messages[{index}]", now)
        for index, entry in enumerate(messages)
        if _role(entry) not in SKIPPED_ROLES
    ]


def _role(entry: object) -> str:
    role = entry.get("role") if isinstance(entry, dict) else None
    return role if isinstance(role, str) else ""


def _message(entry: object, field: str, now: datetime) -> IngestedMessage:
    if not isinstance(entry, dict):
        raise InvalidInput(f"{field} must be an object.", code="wrong_type", field=field)
    speaker = _optional(entry, "speaker", field, MAX_SPEAKER_CHARS)
    role = entry.get("role")
    if role is not None and role not in Role.values:
        raise InvalidInput(f"{field}.role must be “user” or “assistant”.", field=f"{field}.role")
    if not speaker and role is None:
        raise InvalidInput(f"{field} needs a role or a speaker.", field=f"{field}.role")
    return IngestedMessage(
        role=Role(role) if role else (Role.ASSISTANT if speaker.lower() == "assistant" else Role.USER),
        speaker=speaker or str(role),
        content=clean_text(entry.get("content"), field=f"{field}.content", max_chars=MAX_CONTENT_CHARS),
        external_id=_optional(entry, "external_id", field, MAX_EXTERNAL_ID_CHARS),
        created_at=_time(entry.get("created_at"), f"{field}.created_at", now),
    )


def _optional(entry: dict[str, Any], name: str, field: str, limit: int) -> str:
    value = entry.get(name)
    return (
        "" if value is None else clean_text(value, field=f"{field}.{name}", max_chars=limit, allow_empty=True)
    )


def _time(value: object, field: str, now: datetime) -> datetime:
    """An ISO 8601 time or date; UTC where it names no zone."""
    if value is None:
        return now
    problem = InvalidInput(f"{field} must be an ISO 8601 time, such as 2026-11-21T10:35:00Z.", field=field)
    if not isinstance(value, str) or len(value) > 64:
        raise problem
    try:
        moment = parse_datetime(value)
        if moment is None and (day := parse_date(value)) is not None:
            moment = datetime(day.year, day.month, day.day)
        if moment is None:
            raise problem
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise problem from None
    if moment.year not in YEARS:
        raise problem
    return moment


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
