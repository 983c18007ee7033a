"""Fifty conversations at once."""

import asyncio
import json

import pytest

from apps.accounts.models import User
from apps.chat.models import Message, Turn
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from apps.memory.models import Memory
from tests.chat.client import Frame, connected
from tests.peers.anthropic_server import AnthropicServer, Reply, reply, tool


def answer(request: dict[str, object]) -> Reply:
    """Saves a note, then says so; names a conversation when asked to."""
    if not request.get("tools"):
        return reply("A title")
    newest = request["messages"][-1]["content"]  # type: ignore[index]
    if any(block["type"] == "tool_result" for block in newest):
        return reply("Noted, every single word of it.", delay=0.01)
    return reply("Well. ", tool("memory_save", {"content": newest[-1]["text"]}))


async def test_fifty_chats_at_once_end_well(
    alice: User, model: AnthropicServer, caplog: pytest.LogCaptureFixture
) -> None:
    model.fallback = answer

    async def chat(number: int) -> Frame:
        async with connected(alice) as page:
            await page.say(f"Fact number {number}")
            return await page.ended()

    ends = await asyncio.gather(*(chat(number) for number in range(50)))
    await scheduler().idle()
    assert [end["type"] for end in ends] == ["response"] * 50
    assert await in_db(lambda: set(Turn.objects.unscoped().values_list("state", flat=True))) == {"done"}
    assert await in_db(lambda: Memory.objects.for_user(alice).count()) == 50
    texts = await in_db(
        lambda: list(Message.objects.unscoped().filter(role="assistant").values_list("text", flat=True))
    )
    assert texts.count("Noted, every single word of it.") == 50
    assert "locked" not in caplog.text
    assert not any(call["is_error"] for end in ends for call in end["tool_calls"]), json.dumps(ends[0])
