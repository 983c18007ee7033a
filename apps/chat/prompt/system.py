"""The system prompt: the same text for a user until they change their preferences, so that it stays cached."""

from functools import cache
from pathlib import Path
from typing import Any

from apps.accounts.models import Preferences

_FOLDER = Path(__file__).parent.parent / "prompts"


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
