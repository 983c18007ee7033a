"""Input of an ingestion by programs, checked: JSON values to messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, Self

from django.utils import timezone
from pydantic import Field, model_validator

from apps.chat.models import Role
from apps.chat.selectors.conversations import CHAT_CHANNEL
from apps.core.errors import InvalidInput, IzzyError, TooLarge
from apps.core.shapes import DATE_TIME, Checked, OpenInput, clean_time, text
from apps.core.text import clean_text

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


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestedMessage:
    """One message as it was said elsewhere, checked. `role` follows from `speaker` where none was given."""

    role: Role
    speaker: str
    content: str
    external_id: str
    created_at: datetime


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
        raise TooLarge(f"At most {MAX_MESSAGES:,} messages per call.", field="messages", limit=MAX_MESSAGES)
    return messages


def messages_checked(messages: Sequence[object]) -> list[IngestedMessage]:
    """Those of them that somebody said. InvalidInput (with `field`), TooLarge."""
    now = timezone.now()
    return [
        _message(entry, index, now)
        for index, entry in enumerate(messages)
        if role_of(entry) not in SKIPPED_ROLES
    ]


def role_of(entry: object) -> str:
    role = entry.get("role") if isinstance(entry, dict) else None
    return role if isinstance(role, str) else ""


def _message(entry: object, index: int, now: datetime) -> IngestedMessage:
    try:
        given = IngestMessageInput.read(entry)
    except IzzyError as error:
        field = error.extra.get("field")
        error.extra["field"] = f"messages[{index}].{field}" if field else f"messages[{index}]"
        raise
    speaker, role = given.speaker or "", given.role
    return IngestedMessage(
        role=Role(role) if role else (Role.ASSISTANT if speaker.lower() == "assistant" else Role.USER),
        speaker=speaker or str(role),
        content=given.content,
        external_id=given.external_id or "",
        created_at=given.created_at or now,
    )
