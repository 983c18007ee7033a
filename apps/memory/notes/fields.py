"""Limits of a note's fields: one set of checks for tools, API, pages and imports."""

import unicodedata
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from apps.core.errors import InvalidInput
from apps.core.http.shapes import ABSENT, Checked, ClosedInput, Lax, Time, text
from apps.core.text import NOT_BLANK, clean_text, fold
from apps.memory.models import Kind, Tier
from apps.memory.occasions.phrases import MAX_OCCASION_CHARS, MAX_OCCASIONS, clean_occasions

MAX_CONTENT_CHARS = 20_000
MAX_TAGS = 20
MAX_TAG_CHARS = 50
MAX_CATEGORY_CHARS = 64
BULK_LIMIT = 1000

TIER_DEFAULTS = {Tier.SHORT_TERM: (0.6, 0.02), Tier.LONG_TERM: (0.9, 0.005)}
"""(priority, decay per cycle) a note starts with, by tier."""


def clean_tag(value: object) -> str:
    """One tag: 1 to MAX_TAG_CHARS characters, white space inside folded to single spaces."""
    return " ".join(clean_text(value, field="tags", max_chars=MAX_TAG_CHARS).split())


def clean_tags(value: object, *, field: str = "tags") -> list[str]:
    """Tags in the order given, each once however it is written."""
    if not isinstance(value, list | tuple):
        raise InvalidInput("tags must be a list of texts.", code="wrong_type", field=field)
    if len(value) > MAX_TAGS:
        raise InvalidInput(f"A note has at most {MAX_TAGS} tags.", field=field, limit=MAX_TAGS)
    unique: dict[str, str] = {}
    for tag in map(clean_tag, value):
        unique.setdefault(fold(tag), tag)
    return list(unique.values())


def clean_category(value: object, *, field: str = "category") -> str:
    """A category: up to MAX_CATEGORY_CHARS characters, in the one spelling of each letter (NFC); None and "" mean none."""
    if value is None:
        return ""
    value = unicodedata.normalize("NFC", value) if isinstance(value, str) else value
    return clean_text(value, field=field, max_chars=MAX_CATEGORY_CHARS, allow_empty=True)


TAG = {"type": "string", "minLength": 1, "maxLength": MAX_TAG_CHARS, "pattern": NOT_BLANK}
TAGS = Checked(clean_tags, {"type": "array", "items": TAG, "maxItems": MAX_TAGS})
OCCASION = {"type": "string", "minLength": 1, "maxLength": MAX_OCCASION_CHARS, "pattern": NOT_BLANK}
OCCASIONS = Checked(
    clean_occasions,
    {"type": "array", "nullable": True, "items": OCCASION, "maxItems": MAX_OCCASIONS},
)
CATEGORY = Checked(clean_category, {"type": "string", "nullable": True, "maxLength": MAX_CATEGORY_CHARS})


class SupersedeInput(ClosedInput):
    """Fields of a note that takes the place of another."""

    content: Annotated[str, text(MAX_CONTENT_CHARS)]
    tier: Annotated[Tier, Lax] = Tier.LONG_TERM
    kind: Annotated[Kind, Lax] = Kind.GENERAL
    importance: int = Field(3, ge=1, le=5)
    tags: Annotated[list[str], TAGS] = ABSENT
    category: Annotated[str, CATEGORY] = ABSENT
    occasions: Annotated[list[str] | None, OCCASIONS] = Field(
        ABSENT,
        description="When it matters, in short phrases of one line: the situations in which it is brought up. Yours stay "
        "as they are; null has Izzy make them, and so has leaving them out of a new note.",
    )
    valid_from: Time | None = None
    valid_to: Time | None = None
    priority: float = Field(
        ABSENT, ge=0, le=1, description="0.9 long-term, 0.6 short-term unless given."
    )
    decay_rate: float = Field(
        ABSENT, ge=0, le=1, description="0.005 long-term, 0.02 short-term unless given."
    )


class MemoryInput(SupersedeInput):
    """Fields of a new note."""

    status: Literal["active", "pending", "archived"] = "active"


MemoryPatch = MemoryInput.partial()


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
    cleaned = MemoryPatch.read(changes).given
    check_validity(cleaned.get("valid_from"), cleaned.get("valid_to"))
    return cleaned


def check_validity(valid_from: datetime | None, valid_to: datetime | None) -> None:
    """Raises InvalidInput where a note would end to be valid before it begins to."""
    if valid_from and valid_to and valid_to <= valid_from:
        raise InvalidInput("valid_to must be later than valid_from.", field="valid_to")


def folded(values: Mapping[str, Any]) -> dict[str, str]:
    """The folded columns of those of a note's values that have one; tags stand between line breaks."""
    texts = {
        "folded_content": values.get("content"),
        "folded_tags": "\n".join(["", *values["tags"], ""]) if "tags" in values else None,
    }
    return {column: fold(text) for column, text in texts.items() if text is not None}
