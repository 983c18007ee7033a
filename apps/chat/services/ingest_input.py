"""What programs hand over to be taken in, checked: JSON values to messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from apps.chat.models import Role
from apps.chat.selectors.conversations import CHAT_CHANNEL
from apps.core.errors import InvalidInput, TooLarge
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
        _message(entry, f"messages[{index}]", now)
        for index, entry in enumerate(messages)
        if role_of(entry) not in SKIPPED_ROLES
    ]


def role_of(entry: object) -> str:
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
