"""Values of foreign entries, read tolerantly: text that a database holds, times in whatever form, tags, kinds."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from email.utils import parsedate_to_datetime
from typing import Any

from apps.core.text import storable, truncated
from apps.memory.models import Kind
from apps.memory.notes.fields import MAX_CATEGORY_CHARS, MAX_CONTENT_CHARS, MAX_TAG_CHARS, MAX_TAGS

from ..records import MAX_KEY_CHARS, ForeignNote, content_key

YEARS = range(1900, 2201)
"""Times outside are left out, as times that nobody could show."""
MAX_NAME_CHARS = 200
MAX_RELATION_CHARS = 64
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((1e16, 1e9), (1e14, 1e6), (1e11, 1e3))
"""From this number on an epoch counts in nano-, micro- and milliseconds: as seconds it would lie beyond the year 5000."""
_SPELLINGS = (
    *("%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%d", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M"),
    *("%d.%m.%Y", "%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d %b %Y", "%Y-%m", "%B %Y", "%b %Y"),
)
_TAGS_BETWEEN = re.compile(r"[,;\n]|\s+(?=#)")
"""The separators of tags in a text: spaces too where they are written as `#one #two`."""
_KINDS = {
    **{kind.value: kind.value for kind in Kind},
    **dict.fromkeys(("user", "reference", "profile", "personal", "biography", "facts"), "fact"),
    **dict.fromkeys(("feedback", "preferences", "user_preferences", "like", "dislike"), "preference"),
    **dict.fromkeys(("projects", "project_profile", "goal"), "project"),
    **dict.fromkeys(("decisions", "architecture_decisions"), "decision"),
    **dict.fromkeys(("insights", "learning", "lesson", "task_learnings"), "insight"),
}


def text_of(value: object) -> str:
    """The text of a string or a number, as a database holds it and without space around; "" for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        return ""
    return str(storable(str(value))).strip()


def first_text(entry: dict[str, Any], *names: str) -> str:
    """The text of the first of these fields that has one."""
    return next((text for name in names if (text := text_of(entry.get(name)))), "")


def entries_in(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def fields_in(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def moment(value: object) -> datetime | None:
    """A time: ISO 8601, an epoch in seconds to nanoseconds (also as text), a date in words. None for what is none."""
    try:
        found = _moment(value)
        found = found if found is None or found.tzinfo else found.replace(tzinfo=UTC)
        return found.astimezone(UTC) if found and found.year in YEARS else None
    except (ValueError, OverflowError, ArithmeticError, TypeError, OSError):
        return None


def _moment(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return _from_epoch(float(value))
    if not isinstance(value, str) or not 4 <= len(text := value.strip()) <= 64:
        return None
    if re.fullmatch(r"-?\d{9,19}(\.\d+)?", text):
        return _from_epoch(float(text))
    text = re.sub(r"\s*(UTC|GMT|Z)$", "+00:00", text)
    for spelling in ("", *_SPELLINGS):
        try:
            return datetime.strptime(text, spelling) if spelling else datetime.fromisoformat(text)
        except ValueError:
            continue
    return parsedate_to_datetime(value)


def _from_epoch(number: float) -> datetime | None:
    if not math.isfinite(number) or number == 0:
        return None
    unit = next((unit for least, unit in _UNITS if abs(number) >= least), 1.0)
    return EPOCH + timedelta(seconds=number / unit)


def first_moment(entry: dict[str, Any], *names: str) -> datetime | None:
    """The time of the first of these fields that has one."""
    return next((found for name in names if (found := moment(entry.get(name)))), None)


def tags_of(*values: object) -> list[str]:
    """Tags of lists and of texts with commas, each once: at most 20, long ones cut to 50 characters."""
    unique: dict[str, str] = {}
    for value in values:
        parts: Iterable[object] = _TAGS_BETWEEN.split(text_of(value))
        if isinstance(value, list | tuple | set):
            parts = value
        for part in parts:
            named = fields_in(part).get("name") if isinstance(part, dict) else part
            tag = " ".join(text_of(named).lstrip("#").split())
            if tag:
                unique.setdefault(tag.casefold(), truncated(tag, MAX_TAG_CHARS))
    return list(unique.values())[:MAX_TAGS]


def category_of(value: object) -> str:
    return truncated(" ".join(text_of(value).split()), MAX_CATEGORY_CHARS)


def kind_of(value: object) -> str | None:
    """The kind that a foreign word for it stands for, or None."""
    return _KINDS.get(re.sub(r"[\s-]+", "_", text_of(value).lower()))


def relation_of(value: object) -> str:
    return truncated(" ".join(text_of(value).split()), MAX_RELATION_CHARS) or "related"


def key_of(foreign: object, *content: str) -> str:
    """The foreign id, hashed where it is too long for a key; without one a hash of the content."""
    found = text_of(foreign)
    return found if 0 < len(found) <= MAX_KEY_CHARS - 8 else content_key(found, *content)


def name_of(value: object) -> str:
    """A title in one line."""
    return truncated(" ".join(text_of(value).split()), MAX_NAME_CHARS)


def path_part(value: object, other: str = "untitled") -> str:
    """One name of a path under /memories: without slashes, control characters and a dot in front, at most 80 characters."""
    name = re.sub(r"[\x00-\x1f\x7f\u2028\u2029\ufeff\ufffd/\\:*?\"<>|%]+", "-", text_of(value))
    name = name.strip(" .-\u00a0\u3000")
    stem, dot, ending = name.rpartition(".")
    if len(name) > 80 and dot and len(ending) <= 8:
        return f"{stem[: 79 - len(ending)].strip()}.{ending}"
    return name[:80].strip(" .") or other


def pieces(text: str, limit: int) -> list[str]:
    """The text in parts of at most `limit` characters, cut at a paragraph, a line, a sentence or a space if there is one."""
    parts: list[str] = []
    while len(text) > limit:
        window = text[:limit]
        ends = (window.rfind(mark) + len(mark) for mark in ("\n\n", "\n", ". ", "。", " "))
        end = next((end for end in ends if end > limit // 2), limit)
        parts.append(text[:end].strip())
        text = text[end:].strip()
    return [part for part in [*parts, text.strip()] if part]


def notes_of(place: str, key: str, content: str, **values: Any) -> Iterator[ForeignNote]:
    """The note, or several, numbered, where the text is longer than a note may be. A validity that ends before it begins
    has no beginning."""
    if (begin := values.get("valid_from")) and (end := values.get("valid_to")) and end <= begin:
        values["valid_from"] = None
    for number, part in enumerate(pieces(content, MAX_CONTENT_CHARS)):
        where = f"{place}, part {number + 1}" if number else place
        yield ForeignNote(
            place=where, key=f"{key}#{number + 1}" if number else key, content=part, **values
        )


def joined(parts: Sequence[str], between: str = "\n\n") -> str:
    return between.join(part for part in parts if part)
