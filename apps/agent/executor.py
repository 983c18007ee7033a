"""Runs the tool calls of one round."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.agent.events import Event
from apps.agent.protocols import ConversationTools, MemoryTools
from apps.agent.tools.base import Approval, Tool


@dataclass(kw_only=True)
class ToolExecutor:
    """The pipeline every tool call goes through, for one turn. Make one with `executor_for`.

    `approvals` are the user's preferences by tool name; `secrets` the values that must not appear anywhere.
    """

    user_id: UUID
    conversation_id: UUID | None
    turn_id: UUID | None
    approvals: Mapping[str, Approval] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    memory: MemoryTools | None = None
    conversations: ConversationTools | None = None
    tools: Mapping[str, Tool] = field(default_factory=dict)

    def run_round(self, blocks: list[dict[str, Any]], round: int) -> AsyncIterator[Event]:
        """Runs, or goes on with, the `tool_use` blocks of one assistant message; events as they happen."""
        raise NotImplementedError


async def executor_for(
    *,
    user_id: UUID,
    conversation_id: UUID | None,
    turn_id: UUID | None,
    memory: MemoryTools | None = None,
    conversations: ConversationTools | None = None,
) -> ToolExecutor:
    """An executor with the user's preferences and the stored secrets, read in one database hop."""
    raise NotImplementedError
