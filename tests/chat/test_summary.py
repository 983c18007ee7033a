"""Conversations that outgrow their budget: their beginning is summed up, and nothing of it is lost."""

import json
from itertools import pairwise

import pytest
from pytest_django import Settings

from apps.accounts.models import User
from apps.agent.models import ModelCall
from apps.chat.models import Message
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from apps.memory.notes.creation import memory_create
from apps.search.documents import Scope, Source
from apps.search.selectors import search
from benchmarks.prompt import sent_parts
from tests.chat.client import connected, program_of
from tests.chat.rows import conversation
from tests.chat.summaries import WORDS, asked, first_block, is_summary, say, serve, stored, summaries
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.tools import Tools


@pytest.fixture(autouse=True)
def _small_budget(settings: Settings) -> None:
    settings.IZZY_HISTORY_TOKENS = 1000


def numbered(count: int, first: int = 1) -> list[str]:
    return [f"Message {number}. {WORDS}" for number in range(first, first + count)]


async def test_the_oldest_turns_give_way_to_a_summary_and_the_rest_stays_word_for_word(
    alice: User, model: AnthropicServer
) -> None:
    serve(model)
    place = await conversation(alice)
    async with connected(alice) as page:
        await say(page, place, *numbered(6))
    row = await stored(alice, place)
    assert row.summary == "Record number 1: the user collects stamps."
    assert row.summary_by == summaries(model)[0]["model"] == "claude-haiku-5-5"
    material = first_block(summaries(model)[0])
    assert "Message 1." in material
    assert "Answer 1." in material
    assert "<context>" not in material
    newest = asked(model)[-1]["messages"]
    assert first_block(asked(model)[-1]).startswith("<summary>\nThe beginning of this conversation")
    assert "Record number 1: the user collects stamps.\n</summary>" in first_block(asked(model)[-1])
    assert "Message 1." not in json.dumps(newest)
    assert "Message 5." in json.dumps(newest)
    assert [message["role"] for message in newest] == ["user", "assistant"] * (len(newest) // 2) + [
        "user"
    ]
    calls = await in_db(lambda: list(ModelCall.objects.for_user(alice).filter(purpose="summary")))
    assert [call.error_code for call in calls] == [""]


async def test_the_prefix_changes_only_when_a_summary_is_made(
    alice: User, model: AnthropicServer
) -> None:
    serve(model)
    place = await conversation(alice)
    async with connected(alice) as page:
        await say(page, place, *numbered(14))
    sent = [sent_parts(request.body) for request in model.requests if not is_summary(request.json)]
    changed = sum(not later.starts_with(earlier) for earlier, later in pairwise(sent))
    made = len(summaries(model))
    assert made >= 2
    assert changed == made
    assert all(
        later.tools == earlier.tools and later.system == earlier.system
        for earlier, later in pairwise(sent)
    )
    assert max(sent_tokens(request) for request in asked(model)) < 2000


def sent_tokens(request: dict[str, object]) -> int:
    return len(json.dumps(request["messages"])) // 5


async def test_a_summary_is_folded_into_the_next(alice: User, model: AnthropicServer) -> None:
    serve(model)
    place = await conversation(alice)
    async with connected(alice) as page:
        await say(page, place, *numbered(14))
    first, second = map(first_block, summaries(model)[:2])
    assert "<record>" not in first
    assert "<record>\nRecord number 1: the user collects stamps.\n</record>" in second
    assert "Message 1." not in second


async def test_calls_and_their_results_are_never_parted(alice: User, model: AnthropicServer) -> None:
    place = await conversation(alice)
    serve(model)
    texts = numbered(10)
    async with connected(alice) as page:
        for text in texts:
            model.add(
                reply("Let me see.", tool("memory_search", {"query": text[:40]})),
                reply(tool("think", {"thought": WORDS}), tool("think", {"thought": "on"})),
                reply(f"Found nothing. {WORDS}"),
            )
            await say(page, place, text, settle=False)
            await scheduler().idle()
    assert summaries(model)
    for request in asked(model):
        roles = [message["role"] for message in request["messages"]]
        assert roles[0] == "user"
        assert all(one != other for one, other in pairwise(roles))
        uses = [
            block["id"]
            for message in request["messages"]
            for block in message["content"]
            if block["type"] == "tool_use"
        ]
        results = [
            block["tool_use_id"]
            for message in request["messages"]
            for block in message["content"]
            if block["type"] == "tool_result"
        ]
        assert uses == results
    assert '<tool name="memory_search">' in first_block(summaries(model)[0])


async def test_no_turn_waits_for_a_summary(alice: User, model: AnthropicServer) -> None:
    held = reply("Record: held.", hold_after=1)
    serve(model, held)
    place = await conversation(alice)
    async with connected(alice) as page:
        await say(page, place, *numbered(5), settle=False)
        assert (await stored(alice, place)).summary == ""
        assert "Message 1." in json.dumps(asked(model)[-1]["messages"])
        held.release.set()
        await scheduler().idle()
        assert (await stored(alice, place)).summary == "Record: held."
        await say(page, place, "And now?")
    assert "Record: held." in first_block(asked(model)[-1])


async def test_what_is_summed_up_stays_on_the_page_in_search_and_in_rest(
    alice: User, model: AnthropicServer
) -> None:
    serve(model)
    place = await conversation(alice)
    program = await program_of(alice)
    async with connected(alice) as page:
        await say(page, place, f"My boat is called Albatross. {WORDS}", *numbered(6))
        snapshot = await page.snapshot(place)
    assert snapshot["messages"][0]["text"].startswith("My boat is called Albatross.")
    assert len(snapshot["messages"]) == 14
    shown = snapshot["summary"]
    assert shown["text"].startswith("Record number")
    assert 2 <= shown["messages"] <= 12
    turns = [message["turn"] for message in snapshot["messages"]]
    assert shown["before"] == turns[shown["messages"]]
    assert shown["messages"] == turns.index(shown["before"])
    spoken = Scope(sources=frozenset({Source.CONVERSATION}))
    hits = await in_db(lambda: [hit.text for hit in search(alice.id, "boat Albatross", scope=spoken)])
    assert any("Albatross" in text for text in hits)
    found = (await program.get(f"conversations/{place}/")).json()
    assert found["summary"] == shown["text"]
    listed = await Tools(user_id=alice.pk).call("conversation_list", limit=1)
    assert listed["conversations"][0]["summary"] == shown["text"]
    assert (await program.get(f"conversations/{await conversation(alice)}/")).json()["summary"] == ""
    assert (await program.get(f"conversations/{place}/messages/")).json()["count"] == 14


async def test_a_note_whose_surfacing_was_folded_away_may_be_brought_up_again(
    alice: User, model: AnthropicServer
) -> None:
    serve(model)
    await in_db(lambda: memory_create(user_id=alice.id, content="Alice is allergic to shellfish."))
    place = await conversation(alice)
    question = "Am I allergic to shellfish?"
    async with connected(alice) as page:
        await say(page, place, question, question)
        assert "allergic to shellfish." not in context(asked(model)[-1])
        while not (await stored(alice, place)).summary:
            await say(page, place, f"Tell me about trains. {WORDS}")
        await say(page, place, "Thank you", "Good", question)
    assert "Alice is allergic to shellfish." in context(asked(model)[-1])


def context(request: dict[str, object]) -> str:
    """The block of context in the newest message, wherever a summary may stand."""
    blocks = request["messages"][-1]["content"]  # type: ignore[index]
    return str(next(block["text"] for block in blocks if block["text"].startswith("<context>")))


async def test_conversations_within_the_budget_are_left_alone(
    alice: User, model: AnthropicServer
) -> None:
    serve(model)
    place = await conversation(alice)
    async with connected(alice) as page:
        await say(page, place, *numbered(2))
        assert (await page.snapshot(place))["summary"] is None
    assert summaries(model) == []
    assert (await stored(alice, place)).summary_until == 0
    assert await in_db(lambda: Message.objects.for_user(alice).count()) == 4
