"""Calls a web tool the way the executor does, with its progress kept."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.core.ids import uuid7
from tests.tools import Tools


@dataclass(kw_only=True)
class Caller(Tools):
    """One user who opens pages and searches; `progress` has what the tools reported."""

    user_id: UUID = field(default_factory=uuid7)

    async def open(self, url: str, **args: Any) -> str:
        """The result of `open_page`."""
        return str(await self.call("open_page", url=url, **args))

    async def search(self, query: str, **args: Any) -> dict[str, Any]:
        """The result of `web_search`."""
        found: dict[str, Any] = await self.call("web_search", query=query, **args)
        return found
