"""Which capabilities a message seems to ask for, where there are too many to list them all as tools."""

import json

from apps.accounts.models import Preferences
from apps.capabilities.catalog.matching import ABOUT_THIS, capabilities_matching
from apps.capabilities.catalog.names import PREFIX
from apps.capabilities.catalog.selectors import capabilities_active
from apps.capabilities.runs.tools import TOOLSET
from apps.chat.models import Conversation
from apps.chat.prompt.toolbox import LISTED_CAPABILITIES

NAMED = 5
DESCRIPTION_CHARS = 160
QUERY_CHARS = 2_000


def capability_hints(conversation: Conversation, preferences: Preferences, text: str) -> str:
    """A line for each of the best matches for the user's words that is no tool of the conversation; "" where all active
    ones are listed, or none fits. At most five lines, so that the size does not depend on how many there are."""
    if TOOLSET not in preferences.toolsets or not text.strip():
        return ""
    few = capabilities_active(conversation.user_id, limit=LISTED_CAPABILITIES + 1)
    if len(few) <= LISTED_CAPABILITIES:
        return ""
    listed = {definition["name"] for definition in json.loads(conversation.tools)}
    hits = capabilities_matching(conversation.user_id, text[:QUERY_CHARS], top_k=NAMED)
    found = [
        capability
        for hit, capability in hits
        if hit.score >= ABOUT_THIS and f"{PREFIX}{capability.name}" not in listed
    ]
    lines = [f"- {capability.name}: {_short(capability.description)}" for capability in found]
    if not lines:
        return ""
    head = "These capabilities of the user may help. Run one with execute_capability; lookup_capability gives its input schema."
    return "\n".join([head, *lines])


def _short(text: str) -> str:
    return text if len(text) <= DESCRIPTION_CHARS else f"{text[: DESCRIPTION_CHARS - 1]}…"
