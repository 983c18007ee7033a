"""Calls a web tool the way the executor does, with its progress kept."""

from dataclasses import dataclass, field
from typing import Any

from apps.agent.tools.base import ToolContext
from apps.agent.web.pages import open_page
from apps.core.ids import uuid7


@dataclass
class Caller:
    """One user who opens pages; `progress` has what the tool reported."""

    progress: list[dict[str, Any]] = field(default_factory=list)
    context: ToolContext = field(init=False)

    def __post_init__(self) -> None:
        async def emit(data: dict[str, Any]) -> None:
            self.progress.append(data)

        self.context = ToolContext(
            user_id=uuid7(), conversation_id=None, turn_id=None, tool_call_id=uuid7(), emit=emit
        )

    async def open(self, url: str, **args: Any) -> str:
        """The result of `open_page`."""
        return await open_page(self.context, {"url": url} | args)
