"""A search that Anthropic's endpoint runs within its answer, in chat: live, after a reload, in the next request, in the list."""

from typing import Any
from uuid import UUID

import pytest

from apps.accounts.models import User
from apps.agent.model import client as model_client
from apps.agent.selectors import conversation_untrusted
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from tests.chat.client import connected
from tests.chat.rows import conversation
from tests.peers.anthropic_server import AnthropicServer, cited, reply, searched

GARDEN = ("Tomatoes", "https://garden.test/tomatoes")
TEXT = "Let me look.\n\nTwo litres ([Tomatoes](<https://garden.test/tomatoes>)) a day."


@pytest.fixture
def blocks(model: AnthropicServer, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The answer with a search in it, which the peer, taken for Anthropic's endpoint, gives first."""
    monkeypatch.setattr(model_client, "ANTHROPIC_URL", model.url)
    answer = reply("Let me look.", searched("tomatoes", GARDEN), cited("Two litres", GARDEN), " a day.")
    model.add(answer, reply("Fewer."))
    return answer.blocks


async def test_it_reads_the_same_live_and_after_a_reload(
    alice: User, blocks: list[dict[str, Any]]
) -> None:
    place = await conversation(alice)
    async with connected(alice) as page:
        await page.snapshot(place)
        queued = await page.say("How much water?", conversation=place)
        ended = await page.ended()
        assert page.text(queued["turn"]) == ended["text"] == TEXT
        [start] = [frame for frame in page.seen if frame["type"] == "tool_start"]
        assert start["server"] is True
        shown = await page.snapshot(place)
    answer = shown["messages"][-1]
    assert answer["text"] == TEXT
    assert 'href="https://garden.test/tomatoes"' in answer["html"]
    [call] = answer["tool_calls"]
    assert (call["id"], call["name"], call["state"], call["server"]) == (
        start["id"],
        "web_search",
        "done",
        True,
    )


async def test_the_html_goes_on_in_one_run_of_text(alice: User, blocks: list[dict[str, Any]]) -> None:
    place = await conversation(alice)
    async with connected(alice) as page:
        await page.snapshot(place)
        await page.say("How much water?", conversation=place)
        await page.ended()
        numbers = {frame["block"] for frame in page.seen if frame["type"] == "html"}
    assert numbers
    assert max(numbers) < 1000


async def test_the_next_request_holds_the_blocks_as_they_came_and_the_conversation_is_tainted(
    alice: User, model: AnthropicServer, blocks: list[dict[str, Any]]
) -> None:
    place = await conversation(alice)
    async with connected(alice) as page:
        await page.snapshot(place)
        for words in ("How much water?", "And beans?"):
            await page.say(words, conversation=place)
            await page.ended()
            await scheduler().idle()
    chats = [sent for sent in model.messages if "sonnet" in sent["model"]]
    assert chats[1]["messages"][1] == {"role": "assistant", "content": blocks}
    assert await in_db(conversation_untrusted, user_id=alice.pk, conversation_id=UUID(place))
