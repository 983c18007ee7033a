"""Identifiers: time-ordered UUIDs and the forms in which people and models write them."""

import secrets
import threading
import time
from uuid import UUID

from apps.core.errors import NotFound

_NOTE_PREFIX = "note-"
_lock = threading.Lock()
_last_stamp = 0


def uuid7() -> UUID:
    """A version 7 UUID (RFC 9562): 48 bits of Unix milliseconds, 12 bits of sub-millisecond, 62 random bits.

    Ids made by one process grow strictly, also within a millisecond (method 3 of RFC 9562, section 6.2).
    """
    global _last_stamp
    stamp = (time.time_ns() << 12) // 1_000_000
    with _lock:
        stamp = _last_stamp = max(stamp, _last_stamp + 1)
    milliseconds, fraction = stamp >> 12, stamp & 0xFFF
    value = milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | secrets.randbits(62)
    return UUID(int=value)


def parse_id(value: object) -> UUID:
    """The UUID written in `value`, which may carry the prefix `note-`. Raises NotFound when it is none."""
    if isinstance(value, UUID):
        return value
    if isinstance(value, str) and len(value) <= 64:
        try:
            return UUID(value.strip().removeprefix(_NOTE_PREFIX))
        except ValueError:
            pass
    raise NotFound


def note_id(value: UUID) -> str:
    """The form in which a note's id is shown to the model: `note-<uuid>`."""
    return f"{_NOTE_PREFIX}{value}"
