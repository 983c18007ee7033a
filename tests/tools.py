"""Calls the tools of the model as a turn of a user does, without the pipeline around them."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.agent.selectors import ConversationTaint
from apps.agent.tools.base import ToolContext, ToolOutput, find_tool
from apps.core.ids import uuid7


@dataclass(kw_only=True)
class Tools:
    """A turn of one user; `progress` has what the tools reported."""

    user_id: UUID
    conversation_id: UUID | None = None
    message_id: UUID | None = None
    turn_id: UUID | None = None
    taint: ConversationTaint | None = None
    use_memory: bool = True
    permission: dict[str, Any] | None = None
    answer: str = ""
    progress: list[dict[str, Any]] = field(default_factory=list)

    @property
    def context(self) -> ToolContext:
        async def emit(data: dict[str, Any]) -> None:
            self.progress.append(data)

        return ToolContext(
            user_id=self.user_id,
            conversation_id=self.conversation_id,
            turn_id=self.turn_id,
            tool_call_id=uuid7(),
            emit=emit,
            message_id=self.message_id,
            use_memory=self.use_memory,
            taint=self.taint
            or ConversationTaint(user_id=self.user_id, conversation_id=self.conversation_id),
            permission=self.permission,
            answer=self.answer,
        )

    async def output(self, name: str, /, **given: Any) -> ToolOutput:
        """Returns what a call gives; the input is not held against the schema."""
        tool = find_tool(name)
        assert tool is not None, name
        result = await tool.run(self.context, given)
        return result if isinstance(result, ToolOutput) else ToolOutput(result)

    async def call(self, name: str, /, **given: Any) -> Any:
        """The data of what a call gives."""
        return (await self.output(name, **given)).data

    def at_once(self, name: str, /, **given: Any) -> Any:
        """The same of a tool that does database work alone, in this thread."""
        tool = find_tool(name)
        assert tool is not None
        assert tool.arguments is not None
        result = tool.handler(self.context, tool.arguments(**given))
        return result.data if isinstance(result, ToolOutput) else result
