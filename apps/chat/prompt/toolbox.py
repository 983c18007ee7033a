"""The tool list of a conversation, which only ever grows at its end."""

import json
from collections.abc import Collection
from typing import Any

from apps.agent.canonical import canonical_json
from apps.agent.tools.base import Tier, Tool, ToolContext, ToolFailure
from apps.agent.tools.registry import find_tool, tools_for
from apps.chat.models import Conversation

CONVERSATIONS = "conversations"
"""Toolset of the tools over past conversations: offered wherever memory is."""
MEMORY_TOOLSETS = frozenset({"notes", "classic", "files", CONVERSATIONS})


def conversation_tools(conversation: Conversation, toolsets: Collection[str]) -> list[Tool]:
    """The tools for the next request; writes what is new into `conversation.tools` (the caller saves it).

    First those listed before, in their order: one whose toolset was turned off stays, one that no longer exists
    stays with its old definition and answers with an error. Then the ones that have become available.
    """
    offered = {*toolsets, CONVERSATIONS}
    if not conversation.use_memory:
        offered -= MEMORY_TOOLSETS
    listed = [_listed_tool(definition) for definition in json.loads(conversation.tools)]
    names = {tool.name for tool in listed}
    tools = listed + [tool for tool in tools_for(offered) if tool.name not in names]
    conversation.tools = canonical_json([tool.definition() for tool in tools])
    return tools


def _listed_tool(definition: dict[str, Any]) -> Tool:
    known = find_tool(definition["name"])
    if known is not None:
        return known
    return Tool(**definition, handler=_taken_away, tier=Tier.READ_ONLY)


async def _taken_away(context: ToolContext, args: dict[str, Any]) -> str:
    raise ToolFailure("This tool is not available any more. Do without it and tell the user so.")
