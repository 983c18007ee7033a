"""The block that a turn puts in front of the user's words: what differs from turn to turn."""

import re
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_CLOSING_TAG = re.compile(r"</\s*(context|memories)\s*>", re.IGNORECASE)


def context_block(*, now: datetime, time_zone: str, memories: str) -> dict[str, Any]:
    """A text block with the date and time where the user is and the surfaced memories, if any.

    A note cannot end the block early: its own closing tags are dropped.
    """
    lines = [f"Now: {local_time(now, time_zone)}"]
    if memories:
        lines += ["<memories>", _CLOSING_TAG.sub("", memories).strip(), "</memories>"]
    body = "\n".join(lines)
    return {"type": "text", "text": f"<context>\n{body}\n</context>"}


def local_time(now: datetime, time_zone: str) -> str:
    """For example `Saturday, 21 November 2026, 10:35 (Europe/Vienna)`; UTC where the zone is unknown."""
    try:
        zone = ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        zone, time_zone = ZoneInfo("UTC"), "UTC"
    local = now.astimezone(zone)
    return f"{local:%A}, {local.day} {local:%B %Y, %H:%M} ({time_zone})"
