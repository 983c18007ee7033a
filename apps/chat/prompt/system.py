"""The system prompt, the same text for a user until they change their preferences, so that it stays cached; and the block that a
turn puts in front of the user's words: what differs from turn to turn."""

import re
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from apps.accounts.models import Preferences

_FOLDER = Path(__file__).parent.parent / "prompts"
_CLOSING_TAG = re.compile(r"</\s*(context|memories|capabilities)\s*>", re.IGNORECASE)


@cache
def _prompt(name: str) -> str:
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()


def system_blocks(preferences: Preferences, *, use_memory: bool) -> list[dict[str, Any]]:
    """The `system` of a request: text blocks that depend on the preferences and the memory flag alone."""
    parts = [_prompt("system"), _prompt("memory" if use_memory else "no_memory")]
    if use_memory and "files" in preferences.toolsets:
        parts.append(_prompt("files"))
    if preferences.display_name:
        parts.append(f"The user's name is {preferences.display_name}.")
    if preferences.instructions:
        parts.append(
            "The user has written these instructions for every conversation:\n"
            f"<instructions>\n{preferences.instructions}\n</instructions>"
        )
    return [{"type": "text", "text": "\n\n".join(parts)}]


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
