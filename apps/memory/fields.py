"""What a note's fields may hold: one set of checks for tools, API, pages and imports."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Required, TypedDict

from django.utils.dateparse import parse_datetime

from apps.core.errors import InvalidInput
from apps.core.text import clean_text

from .models import Kind, Status, Tier

MAX_CONTENT_CHARS = 20_000
MAX_TAGS = 20
MAX_TAG_CHARS = 50
MAX_CATEGORY_CHARS = 64
BULK_LIMIT = 1000

TIER_DEFAULTS = {Tier.SHORT_TERM: (0.6, 0.02), Tier.LONG_TERM: (0.9, 0.005)}
"""(priority, decay per cycle) a note starts with, by tier."""

STANDING = "standing"
"""The category of what is put beside the first message of every conversation: how the user wants to be treated, and what
must never be overlooked, whatever the message is about."""

WRITABLE_STATUS = (Status.ACTIVE, Status.PENDING, Status.ARCHIVED)


class MemoryFields(TypedDict, total=False):
    """The fields of a note, beside its content, that a caller may set."""

    tier: str
    kind: str
    importance: int
    tags: list[str]
    category: str
    status: str
    valid_from: datetime | str | None
    valid_to: datetime | str | None
    priority: float
    decay_rate: float


class MemoryChanges(MemoryFields, total=False):
    """What `memory_update` may change."""

    content: str


class MemoryDraft(MemoryFields, total=False):
    """A note to be: content and whatever is known about it."""

    content: Required[str]


def clean_content(value: object) -> str:
    """The text of a note: 1 to MAX_CONTENT_CHARS characters that a database can hold.

    Raises InvalidInput (`empty_text` …) or TooLarge.
    """
    return clean_text(value, field="content", max_chars=MAX_CONTENT_CHARS)


def clean_changes(changes: Mapping[str, object]) -> dict[str, Any]:
    """The given fields, checked and in their stored form.

    Raises InvalidInput with `extra.field` for an unknown field, a wrong type or a value out of range, and
    TooLarge for text over its limit.
    """
    cleaned: dict[str, Any] = {}
    for name, value in changes.items():
        check = _CHECKS.get(name)
        if check is None:
            raise InvalidInput(f"A note has no field {name[:50]!r}.", code="unknown_field", field=name[:50])
        cleaned[name] = check(value)
    check_validity(cleaned.get("valid_from"), cleaned.get("valid_to"))
    return cleaned


def check_validity(valid_from: datetime | None, valid_to: datetime | None) -> None:
    """Raises InvalidInput where a note would end to be valid before it begins to."""
    if valid_from and valid_to and valid_to <= valid_from:
        raise InvalidInput("valid_to must be later than valid_from.", field="valid_to")


def clean_time(value: object, *, field: str) -> datetime:
    """An aware time from a datetime or an ISO 8601 text; a time or date without zone is UTC."""
    moment = value if isinstance(value, datetime) else _parse_time(value)
    if moment is None:
        raise InvalidInput(f"{field} must be a time in ISO 8601, such as 2026-05-01T12:00:00Z.", field=field)
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"{field} is out of range.", field=field) from None


def clean_threshold(value: object) -> float:
    """A score from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput("threshold must be a number from 0 to 1.", field="threshold")
    return float(value)


def _parse_time(value: object) -> datetime | None:
    if not isinstance(value, str) or len(value) > 64:
        return None
    try:
        return parse_datetime(value.strip()) or datetime.fromisoformat(value.strip())
    except ValueError:
        return None


def _optional_time(field: str) -> Callable[[object], datetime | None]:
    return lambda value: None if value is None else clean_time(value, field=field)


def _choice(field: str, allowed: tuple[str, ...]) -> Callable[[object], str]:
    def check(value: object) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise InvalidInput(f"{field} must be one of {', '.join(allowed)}.", field=field)
        return str(value)

    return check


def _importance(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 5:
        raise InvalidInput("importance must be a whole number from 1 to 5.", field="importance")
    return value


def _share(field: str) -> Callable[[object], float]:
    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise InvalidInput(f"{field} must be a number from 0 to 1.", field=field)
        return float(value)

    return check


def clean_tag(value: object) -> str:
    """One tag: 1 to MAX_TAG_CHARS characters, white space inside folded to single spaces."""
    return " ".join(clean_text(value, field="tags", max_chars=MAX_TAG_CHARS).split())


def _tags(value: object) -> list[str]:
    """Tags in the order given, each once whatever its case."""
    if not isinstance(value, list | tuple):
        raise InvalidInput("tags must be a list of texts.", code="wrong_type", field="tags")
    if len(value) > MAX_TAGS:
        raise InvalidInput(f"A note has at most {MAX_TAGS} tags.", field="tags", limit=MAX_TAGS)
    unique: dict[str, str] = {}
    for tag in map(clean_tag, value):
        unique.setdefault(tag.casefold(), tag)
    return list(unique.values())


def clean_category(value: object) -> str:
    """A category: up to MAX_CATEGORY_CHARS characters; None and "" mean none."""
    if value is None:
        return ""
    return clean_text(value, field="category", max_chars=MAX_CATEGORY_CHARS, allow_empty=True)


_CHECKS: dict[str, Callable[[object], Any]] = {
    "content": clean_content,
    "tier": _choice("tier", tuple(Tier.values)),
    "kind": _choice("kind", tuple(Kind.values)),
    "importance": _importance,
    "tags": _tags,
    "category": clean_category,
    "status": _choice("status", tuple(str(status) for status in WRITABLE_STATUS)),
    "valid_from": _optional_time("valid_from"),
    "valid_to": _optional_time("valid_to"),
    "priority": _share("priority"),
    "decay_rate": _share("decay_rate"),
}
