"""The tool list of a conversation, which only ever grows at its end, and the capabilities that are too many to be listed in it."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from apps.accounts.models import Preferences
from apps.agent.model.messages import canonical_json
from apps.agent.tools.base import Tier, Tool, ToolContext, ToolFailure
from apps.agent.tools.registry import find_tool, tools_for
from apps.capabilities.catalog.matching import ABOUT_THIS, capabilities_matching
from apps.capabilities.catalog.names import NAME, PREFIX
from apps.capabilities.catalog.selectors import capabilities_active, capabilities_named, capabilities_used_in
from apps.capabilities.models import Capability
from apps.capabilities.runs.tools import TOOLSET, capability_tool, named_tool
from apps.capabilities.runs.tools import TOOLSET as CAPABILITIES
from apps.chat.models import Conversation

CONVERSATIONS = "conversations"
"""Toolset of the tools over past conversations: offered wherever memory is."""
MEMORY_TOOLSETS = frozenset({"notes", "classic", "files", CONVERSATIONS})
LISTED_CAPABILITIES = 30
"""With up to so many active ones all are tools of their own; beyond that only those that a conversation uses."""
NAMED = 5
DESCRIPTION_CHARS = 160
QUERY_CHARS = 2_000


def conversation_tools(conversation: Conversation, toolsets: Collection[str]) -> list[Tool]:
    """The tools for the next request; writes what is new into `conversation.tools` (the caller saves it).

    First those listed before, in their order: one whose toolset was turned off stays, one that no longer exists
    stays with its old definition and answers with an error. Then the ones that have become available, the
    capabilities last. A capability keeps the definition under which it was first listed; which version runs, and
    what its input must be, is decided when it is called.
    """
    offered = {*toolsets, CONVERSATIONS}
    if not conversation.use_memory:
        offered -= MEMORY_TOOLSETS
    definitions = json.loads(conversation.tools)
    names = {definition["name"] for definition in definitions}
    own = capabilities_named(
        conversation.user_id, [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]
    )
    listed = [_listed_tool(definition, own) for definition in definitions]
    tools = listed + [tool for tool in tools_for(offered) if tool.name not in names]
    if CAPABILITIES in offered:
        tools += _new_capabilities(conversation, names)
    conversation.tools = canonical_json([tool.definition() for tool in tools])
    return tools


def _new_capabilities(conversation: Conversation, listed: set[str]) -> list[Tool]:
    """The capabilities that join the list: all while they are few, else those that were run in this conversation."""
    room = LISTED_CAPABILITIES - sum(name.startswith(PREFIX) for name in listed)
    if room <= 0:
        return []
    found: list[Capability] = capabilities_active(conversation.user_id, limit=LISTED_CAPABILITIES + 1)
    if len(found) > LISTED_CAPABILITIES:
        found = capabilities_used_in(conversation.user_id, conversation.id)
    new = [capability for capability in found if f"{PREFIX}{capability.name}" not in listed]
    return [capability_tool(capability) for capability in new[:room]]


def _listed_tool(definition: dict[str, Any], own: Mapping[str, Capability]) -> Tool:
    name = definition["name"].removeprefix(PREFIX)
    if definition["name"].startswith(PREFIX) and NAME.fullmatch(name):
        return named_tool(
            name,
            own.get(name),
            description=definition["description"],
            shown_schema=definition["input_schema"],
        )
    known = find_tool(definition["name"])
    if known is not None:
        return known
    return Tool(**definition, handler=_taken_away, tier=Tier.READ_ONLY)


async def _taken_away(context: ToolContext, args: dict[str, Any]) -> str:
    raise ToolFailure("This tool is not available any more. Do without it and tell the user so.")


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
