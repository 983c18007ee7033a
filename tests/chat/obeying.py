"""A conversation with a model that does what a page says."""

from typing import Any

from apps.accounts.models import User
from apps.chat.turns.scheduler import scheduler as runners
from tests.chat.client import connected
from tests.peers.anthropic_server import reply, tool
from tests.peers.web_pages import WebPages


async def said(user: User, place: str, text: str, *, decision: str = "deny") -> dict[str, Any] | None:
    """One turn in a conversation; what it first waits for. Whatever it asks is declined, or decided so."""
    first: dict[str, Any] | None = None
    async with connected(user) as page:
        await page.say(text, conversation=place)
        ended = await page.ended()
        while waits := ended.get("pending_approval"):
            first = first or waits
            await page.send("approve", id=waits["id"], decision=decision)
            ended = await page.ended()
        await runners().idle()
    return first


def opens(url: str) -> Any:
    """The model opens a page."""
    return reply(tool("open_page", {"url": url}))


def paths(web: WebPages) -> list[str]:
    """Requests that the web got."""
    return [asked.path for asked in web.asked]
