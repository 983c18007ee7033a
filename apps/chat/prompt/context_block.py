"""The block that a turn puts in front of the user's words: what differs from turn to turn."""

import re
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_CLOSING_TAG = re.compile(r"</\s*(context|memories|capabilities)\s*>", re.IGNORECASE)


def context_block(*, now: datetime, time_zone: str, memories: str, capabilities: str = "") -> dict[str, Any]:
    """A text block with the date and time where the user is, the surfaced memories and the capabilities that may help,
    if any.

    Neither can end the block early: their own closing tags are dropped.
    """
    lines = [f"Now: {local_time(now, time_zone)}"]
    if memories:
        lines += ["<memories>", _CLOSING_TAG.sub("", memories).strip(), "</memories>"]
    if capabilities:
        lines += ["<capabilities>", _CLOSING_TAG.sub("", capabilities).strip(), "</capabilities>"]
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
