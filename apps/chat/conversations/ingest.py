"""Takes in conversations that were held elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from pydantic import Field, model_validator

from apps.chat.conversations.handover import Shown, conversation_capture, document_of, messages_leave
from apps.chat.conversations.selectors import CHAT_CHANNEL
from apps.chat.models import Conversation, Message, Role
from apps.core.db.writing import once, precompute
from apps.core.errors import InvalidInput, IzzyError, TooLarge
from apps.core.http.shapes import DATE_TIME, Checked, OpenInput, clean_time, text
from apps.core.text import canonical_json, clean_text
from apps.memory.capture.windows import pieces_of
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


def _time(value: object, *, field: str) -> datetime:
    """A time in years that a page can show."""
    moment = clean_time(value, field=field)
    if moment.year not in YEARS:
        raise InvalidInput(f"{field} is out of range.", field=field)
    return moment


class SkippedMessage(OpenInput):
    """A message that nobody said: it is counted as skipped and not kept, whatever it holds beside its role."""

    role: Literal[*sorted(SKIPPED_ROLES)]  # type: ignore[valid-type]


class IngestMessageInput(OpenInput):
    """A message to add."""

    openapi = {"anyOf": [{"required": ["role"]}, {"required": ["speaker"]}]}
    content: Annotated[str, text(MAX_CONTENT_CHARS)]
    role: Literal[*Role.values] | None = Field(None, description="This, or a speaker.")  # type: ignore[valid-type]
    speaker: Annotated[str, text(MAX_SPEAKER_CHARS, allow_empty=True)] | None = None
    external_id: Annotated[str, text(MAX_EXTERNAL_ID_CHARS, allow_empty=True)] | None = None
    created_at: Annotated[datetime, Checked(_time, DATE_TIME)] | None = None

    @model_validator(mode="after")
    def _said_by_somebody(self) -> Self:
        if not self.speaker and self.role is None:
            raise InvalidInput("A message needs a role or a speaker.", field="role")
        return self


def channel_checked(channel: object) -> str:
    """The channel's name; that of Izzy's own conversations is refused."""
    name = clean_text(channel or DEFAULT_CHANNEL, field="channel", max_chars=MAX_CHANNEL_CHARS)
    if name == CHAT_CHANNEL:
        raise InvalidInput("The channel “chat” is Izzy's own; choose another name.", field="channel")
    return name


def session_checked(session: object) -> str:
    return clean_text(session, field="session", max_chars=MAX_SESSION_CHARS)


def messages_listed(messages: object) -> list[object]:
    """The messages as they came. InvalidInput, TooLarge."""
    if not isinstance(messages, list) or not messages:
        raise InvalidInput("messages must be a list with at least one message.", field="messages")
    if len(messages) > MAX_MESSAGES:
        raise TooLarge(
            f"At most {MAX_MESSAGES:,} messages per call.", field="messages", limit=MAX_MESSAGES
        )
    return messages


def role_of(entry: object) -> str:
    role = entry.get("role") if isinstance(entry, dict) else None
    return role if isinstance(role, str) else ""


def message_of(user_id: UUID, entry: object, index: int, now: datetime) -> Message:
    """The row of a message, without conversation and position. InvalidInput, TooLarge."""
    try:
        given = IngestMessageInput.read(entry)
    except IzzyError as error:
        field = error.extra.get("field")
        error.extra["field"] = f"messages[{index}].{field}" if field else f"messages[{index}]"
        raise
    speaker, role = given.speaker or "", given.role
    return Message(
        user_id=user_id,
        role=Role(role) if role else (Role.ASSISTANT if speaker.lower() == "assistant" else Role.USER),
        blocks=canonical_json([{"type": "text", "text": given.content}]),
        text=given.content,
        speaker=speaker or str(role),
        external_id=given.external_id or "",
        indexed=True,
        captured=True,
        created_at=given.created_at or now,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingestion:
    """The result of an ingestion."""

    conversation_id: UUID
    added: list[UUID]  # ids of the new messages, in order
    repeated: int  # had come before
    skipped: int = 0  # roles system, developer, tool, function


def messages_ingest(
    *,
    user_id: UUID,
    session: object,
    messages: object,
    channel: object = None,
    extract: bool = True,
    shown: Sequence[Shown] = (),
) -> Ingestion:
    """Adds messages to the session's conversation, searchable when it returns; ones with a known `external_id` are left.

    `messages` is a list of at most 1,000 objects `{role or speaker, content, external_id?, created_at?}`. `session`
    names the conversation within its `channel`; "chat" is Izzy's own and refused. A time without zone is UTC.
    Messages with a role of SKIPPED_ROLES are left out. With `extract` the others wait at once to be read for what is
    worth remembering; what an assistant says after tool output in the same call counts as others' words. `shown` are the
    notes that Izzy put beside what was said.
    InvalidInput (with `field`), TooLarge.
    """
    channel_name, session_name = channel_checked(channel), session_checked(session)
    given = messages_listed(messages)
    now = timezone.now()
    checked = [
        message_of(user_id, entry, index, now)
        for index, entry in enumerate(given)
        if role_of(entry) not in SKIPPED_ROLES  # the others nobody said
    ]
    after_tools = any(role_of(entry) in TOOL_ROLES for entry in given)
    with precompute():
        # The new messages are read before the transaction begins: writing them takes a twentieth of the time.
        messages_prepare(fresh_in(Session(user_id, channel_name, session_name).found(), checked))
        conversation_id, added = session_store(
            Session(user_id, channel_name, session_name),
            checked,
            extract=extract,
            after_tools=after_tools,
            shown=shown,
        )
    return Ingestion(
        conversation_id=conversation_id,
        added=added,
        repeated=len(checked) - len(added),
        skipped=len(given) - len(checked),
    )


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation that was held elsewhere, by its channel and its name there."""

    user_id: UUID
    channel: str
    name: str
    title: str = ""
    changed_at: datetime | None = None  # there, where that is known

    def found(self) -> Conversation | None:
        """Its conversation, where it is not being deleted."""
        rows = Conversation.objects.for_user(self.user_id)
        return rows.filter(channel=self.channel, session=self.name).first()


def messages_prepare(messages: Sequence[Message]) -> None:
    """Works out what `session_store` needs for new messages of one user and one session, within `precompute`."""
    if messages:
        texts = [message.text for message in messages]
        documents_prepare(user_id=messages[0].user_id, texts=texts)
    for message in messages:
        once(pieces_of, message.text, message.role == Role.USER)


def messages_remove(session: Session, ids: Sequence[UUID]) -> None:
    """Removes messages of the session's conversation, also from search and from what waits to be read. Within a transaction."""
    conversation = session.found()
    if ids and conversation is not None:
        of_user = {"user_id": session.user_id, "conversation_id": conversation.pk}
        messages_leave(**of_user, message_ids=ids)
        conversation.messages.filter(pk__among=ids).delete()


@transaction.atomic
def session_store(
    session: Session,
    messages: Sequence[Message],
    *,
    extract: bool,
    after_tools: bool = False,
    trusted: bool = True,
    shown: Sequence[Shown] = (),
) -> tuple[UUID, list[UUID]]:
    """Adds those of the messages to the session's conversation that are new; its id and theirs. What is not `trusted` counts as
    others' words, whoever is named as having said it."""
    gone = Conversation.objects.unscoped().filter(
        user_id=session.user_id, channel=session.channel, session=session.name
    )
    gone.exclude(deleted_at=None).update(session="")  # of one that is being deleted its name is free
    conversation = _conversation(session, messages)
    rows = fresh_in(conversation, messages)
    for position, row in enumerate(rows, conversation.last_position + 1):
        row.conversation, row.position = conversation, position
    conversation.last_position += len(rows)
    conversation.save(update_fields=["last_position"])
    Message.objects.bulk_create(rows, batch_size=500)
    documents_index(user_id=session.user_id, documents=[document_of(row) for row in rows])
    conversation_capture(
        conversation,
        rows,
        extract=extract,
        at_once=True,
        after_tools=after_tools,
        trusted=trusted,
        shown=shown,
    )
    return conversation.id, [row.id for row in rows]


def _conversation(session: Session, messages: Sequence[Message]) -> Conversation:
    """The session's conversation, locked, made when it is new."""
    now = timezone.now()
    times = [message.created_at for message in messages]
    newest = max(filter(None, [*times, session.changed_at]), default=now)
    conversation, created = (
        Conversation.objects.unscoped()
        .select_for_update()
        .get_or_create(
            user_id=session.user_id,
            channel=session.channel,
            session=session.name,
            defaults={
                "title": session.title or session.name,
                "title_by_user": True,
                "created_at": min(times, default=now),
                "updated_at": newest,
            },
        )
    )
    if not created and newest > conversation.updated_at:
        conversation.updated_at = newest
        conversation.save(update_fields=["updated_at"])
    return conversation


def fresh_in(conversation: Conversation | None, messages: Sequence[Message]) -> list[Message]:
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
