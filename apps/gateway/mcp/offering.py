"""The tools that MCP offers to a user's programs, and how each is described there."""

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from apps.accounts.models import Scope
from apps.agent.tools.base import Tier, Tool, find_tool
from apps.capabilities.catalog.drafts import PREFIX
from apps.capabilities.catalog.selectors import capabilities_active, capability_get
from apps.capabilities.models import Capability, Status
from apps.capabilities.runs.tools import capability_tool, is_unseen
from apps.chat.prompt import LISTED_CAPABILITIES
from apps.core.errors import NotFound

from .callers import scope_for

if TYPE_CHECKING:
    from mcp.types import Tool as MCPTool

BUILT_IN = (
    "conversation_search",
    "deep_memory",
    "memory",
    "memory_delete",
    "memory_save",
    "memory_search",
    "memory_update",
)
FINDING = ("execute_capability", "lookup_capability")
"""Where there are more capabilities than are listed these find and run the others."""
MAX_DESCRIPTION_BYTES = 2_000
"""Claude Code cuts a description at 2 KB."""
RESULT_CHARS = "anthropic/maxResultSizeChars"
NEEDS_PERSON = "anthropic/requiresUserInteraction"


def tools_offered(user_id: UUID, *, may_write: bool) -> list[Tool]:
    """The tools in a fixed order: the built-in ones by name, then the active capabilities by name. Synchronous.

    All capabilities are listed while they are few, else those that were used last; any active one can be called.
    """
    active = [each for each in capabilities_active(user_id) if not is_unseen(each)]
    names = [*BUILT_IN]
    if len(active) > LISTED_CAPABILITIES:
        names = sorted([*names, *FINDING])
        active = sorted(sorted(active, key=_last_used, reverse=True)[:LISTED_CAPABILITIES], key=_name)
    tools = [tool for name in names if (tool := find_tool(name)) is not None]
    tools += [capability_tool(each) for each in active]
    return [tool for tool in tools if may_write or scope_for(tool) == Scope.READ]


def _last_used(capability: Capability) -> tuple[bool, float]:
    at = capability.last_run_at
    return at is not None, at.timestamp() if at else 0.0


def _name(capability: Capability) -> str:
    return capability.name


def tool_called(user_id: UUID, name: str) -> Tool | None:
    """The tool that a call means, listed or not; None where the user has none of that name. Synchronous."""
    if name in BUILT_IN or name in FINDING:
        return find_tool(name)
    if not name.startswith(PREFIX):
        return None
    try:
        capability = capability_get(user_id, name.removeprefix(PREFIX))
    except NotFound:
        return None
    if capability.status != Status.ACTIVE or is_unseen(capability):
        return None
    tool = capability_tool(capability)
    schema = capability.current.input_schema if capability.current else capability.input_schema
    return replace(tool, input_schema=schema)


def described(tool: Tool) -> "MCPTool":
    """The tool as MCP lists it."""
    from mcp.types import Tool as MCPTool  # takes half a second: not at every start
    from mcp.types import ToolAnnotations

    read_only = tool.tier == Tier.READ_ONLY
    annotations = ToolAnnotations(
        title=tool.title,
        read_only_hint=read_only,
        destructive_hint=not read_only and tool.notes != "written",
        idempotent_hint=read_only or tool.notes in ("changed", "deleted"),
        open_world_hint=tool.reach is not None and not read_only,
    )
    meta = {RESULT_CHARS: tool.result_limit} | ({NEEDS_PERSON: True} if tool.notes == "deleted" else {})
    return MCPTool(
        name=tool.name,
        title=tool.title,
        description=_cut(tool.description),
        input_schema=tool.shown_schema or tool.input_schema,
        annotations=annotations,
        _meta=meta,
    )


def _cut(text: str) -> str:
    whole = text.encode()
    if len(whole) <= MAX_DESCRIPTION_BYTES:
        return text
    return whole[: MAX_DESCRIPTION_BYTES - 3].decode(errors="ignore") + "…"
