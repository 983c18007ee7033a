"""Memory beside requests: what is added where, what is added again, and what is left alone."""

import json
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.accounts.services import preferences_update
from apps.core.db.pool import in_db
from apps.core.text import estimate_tokens
from apps.gateway.models import ClientSession, ProxyTurn
from apps.gateway.proxy import app, memory
from apps.memory.models import STANDING, Memory
from apps.memory.notes.changes import memory_delete
from apps.memory.notes.creation import memory_create
from apps.memory.purge import memory_purge
from tests.gateway.proxy.driving import Proxy, blocks_of
from tests.peers.anthropic_server import failure, reply, tool

pytestmark = pytest.mark.django_db(transaction=True)

ALLERGY = "I am allergic to peanuts."
ASKS = "Which snack with peanuts should I cook tonight?"
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Page: everybody loves satay."}


@pytest.fixture
async def allergy(proxy: Proxy, alice: User) -> Memory:
    return await in_db(memory_create, user_id=alice.pk, content=ALLERGY, kind="fact", importance=5)


@pytest.mark.usefixtures("allergy")
async def test_what_is_relevant_stands_at_the_end_of_the_newest_user_turn_and_nowhere_else(
    proxy: Proxy,
) -> None:
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    await proxy.ask(ASKS, system=system, metadata={"user_id": "x"}, future={"field": [1.50, None]})
    sent = proxy.upstream.messages[-1]
    assert sent["system"] == system
    assert sent["future"] == {"field": [1.50, None]}
    [own, added] = sent["messages"][0]["content"]
    assert own == {"type": "text", "text": ASKS}
    assert added["type"] == "text"
    assert "cache_control" not in added
    assert ALLERGY in added["text"]
    assert estimate_tokens(added["text"]) <= 500


@pytest.mark.usefixtures("allergy")
async def test_it_stands_behind_the_results_of_tools(proxy: Proxy) -> None:
    call = {"role": "assistant", "content": [tool("search", id="toolu_1")]}
    answer = {"role": "user", "content": [RESULT, {"type": "text", "text": ASKS}]}
    await proxy.ask("Hello.", call, answer)
    assert [block["type"] for block in proxy.newest[2]["content"]] == ["tool_result", "text", "text"]
    assert blocks_of(proxy.newest[2])
    assert proxy.newest[:2] == [{"role": "user", "content": "Hello."}, call]


@pytest.mark.usefixtures("allergy")
async def test_where_nothing_is_relevant_the_body_goes_through_byte_by_byte(proxy: Proxy) -> None:
    body = b'{"model" : "claude-sonnet-5-5","max_tokens":1e3, "messages":[{"content":"What is 2 + 2?","role":"user"}], "n": 1.10}'
    await proxy.send("POST", "/v1/messages", body)
    assert proxy.upstream.requests[-1].body == body


@pytest.mark.usefixtures("allergy")
async def test_the_same_bytes_come_again_in_later_turns_and_what_was_shown_does_not(
    proxy: Proxy,
) -> None:
    await proxy.ask(ASKS)
    first = proxy.newest[0]
    await proxy.ask(ASKS, "Rice cakes.", "And which peanut butter goes with them?")
    assert proxy.newest[0] == first
    assert blocks_of(first)
    assert not blocks_of(proxy.newest[2])


@pytest.mark.parametrize("session", ["", "s-1"])
async def test_over_twenty_turns_each_request_begins_with_the_one_before(
    proxy: Proxy, alice: User, session: str
) -> None:
    topics = ["peanuts", "Lisbon", "my sister Ada", "tennis on Mondays", "the red bicycle"]
    for topic in topics:
        await in_db(
            memory_create,
            user_id=alice.pk,
            content=f"I care a lot about {topic}.",
            kind="fact",
            importance=5,
        )
    said: list[str] = []
    repeated = total = 0
    for turn in range(20):
        said.append(f"Tell me about {topics[turn % 5]}, question {turn}, please; what do I care about?")
        await proxy.ask(*said, session=session)
        sent = json.dumps(proxy.newest)[:-1]
        if turn:
            before = json.dumps(proxy.upstream.messages[-2]["messages"])[:-1]
            repeated += len(before) if sent.startswith(before) else 0
            total += len(before)
        said.append(f"Answer {turn}.")
    assert sum(len(blocks_of(message)) for message in proxy.newest) > 1
    assert repeated == total


@pytest.mark.usefixtures("allergy")
async def test_blocks_are_added_again_where_memory_fails_or_was_switched_off(
    proxy: Proxy, alice: User
) -> None:
    token = await proxy.token(alice)
    await proxy.ask(ASKS, session="s")
    first = proxy.newest[0]
    with patch.object(memory, "block_for", side_effect=RuntimeError):
        await proxy.ask(ASKS, "Rice.", "Do I like cashews?", session="s")
    assert proxy.newest[0] == first
    token.proxy_memory = "none"
    await token.asave()
    await proxy.ask(ASKS, "Rice.", "Do I like cashews?", "Yes.", "Why?", session="s")
    assert proxy.newest[0] == first


@pytest.mark.usefixtures("allergy")
async def test_a_memory_that_takes_too_long_is_not_waited_for(proxy: Proxy) -> None:
    def slow(*args: Any, **options: Any) -> None:
        time.sleep(0.3)  # a query that hangs

    with patch.object(app, "MEMORY_SECONDS", 0.05), patch.object(memory, "block_for", slow):
        answered = await proxy.ask(ASKS)
    assert answered.status == 200
    assert proxy.newest == [{"role": "user", "content": ASKS}]
    await proxy.ask(ASKS)  # the next one looks again
    assert blocks_of(proxy.newest[0])


@pytest.mark.usefixtures("allergy")
async def test_a_tools_results_alone_bring_up_nothing_new(proxy: Proxy) -> None:
    call = {"role": "assistant", "content": [tool("search", id="toolu_1")]}
    await proxy.ask(ASKS)
    await proxy.ask(ASKS, call, {"role": "user", "content": [RESULT]})
    assert blocks_of(proxy.newest[0])
    assert proxy.newest[2]["content"] == [RESULT]


async def test_a_fork_has_the_blocks_up_to_where_it_begins_and_a_session_of_its_own(
    proxy: Proxy, allergy: Memory, alice: User
) -> None:
    await proxy.ask(ASKS)
    first = proxy.newest[0]
    await proxy.ask(ASKS, "Rice.", "Thanks.")
    await proxy.ask(ASKS, "Rice.", "Thanks.", "Bye.", "One more thing about Lisbon.")
    await proxy.ask(ASKS, "Rice.", "Something else, please.")
    assert proxy.newest[0] == first
    assert await ClientSession.objects.for_user(alice).acount() == 2
    await proxy.ask(ASKS, "Rice.", "Something else, please.", "Tofu.", "Good.")
    assert proxy.newest[0] == first
    assert await ClientSession.objects.for_user(alice).acount() == 2


@pytest.mark.usefixtures("allergy")
async def test_a_request_that_is_sent_again_is_the_same_request(proxy: Proxy, alice: User) -> None:
    proxy.upstream.add(failure(529, "overloaded_error"))
    assert (await proxy.ask(ASKS)).status == 529
    assert (await proxy.ask(ASKS)).status == 200
    assert proxy.upstream.messages[0] == proxy.upstream.messages[1]
    assert await ClientSession.objects.for_user(alice).acount() == 1
    assert await ProxyTurn.objects.for_user(alice).acount() == 1


@pytest.mark.usefixtures("allergy")
async def test_moved_cache_markers_and_cleared_results_do_not_change_whose_turn_it_is(
    proxy: Proxy,
) -> None:
    marked = {"type": "text", "text": ASKS, "cache_control": {"type": "ephemeral"}}
    await proxy.ask({"role": "user", "content": [marked]})
    block = blocks_of(proxy.newest[0])
    await proxy.ask({"role": "user", "content": ASKS}, "Rice.", "Thanks.")
    assert blocks_of(proxy.newest[0]) == block != []


@pytest.mark.usefixtures("allergy")
async def test_a_server_side_thread_is_one_session(proxy: Proxy, alice: User) -> None:
    proxy.upstream.add(reply("Rice.", message_id="msg_1"))
    await proxy.ask(ASKS, thread={"type": "create"})
    await proxy.ask("And peanut butter?", thread={"type": "continue", "previous_message_id": "msg_1"})
    assert not blocks_of(proxy.newest[0])
    assert await ClientSession.objects.for_user(alice).acount() == 1


@pytest.mark.usefixtures("allergy")
@pytest.mark.parametrize(
    ("fields", "headers"),
    [
        ({"max_tokens": 64}, {}),
        ({"tool_choice": {"type": "tool", "name": "title"}, "tools": []}, {}),
        ({}, {"x-claude-code-agent-id": "a1"}),
    ],
)
async def test_what_a_program_asks_for_itself_passes_untouched(
    proxy: Proxy, alice: User, fields: dict[str, Any], headers: dict[str, str]
) -> None:
    await proxy.ask(ASKS, headers=headers, session="s", **fields)
    assert proxy.newest == [{"role": "user", "content": ASKS}]
    assert not await ClientSession.objects.for_user(alice).aexists()


@pytest.mark.usefixtures("allergy")
async def test_counting_counts_what_would_be_added_and_leaves_nothing(proxy: Proxy, alice: User) -> None:
    await proxy.ask(ASKS, path="/v1/messages/count_tokens")
    counted = proxy.upstream.requests[-1].json["messages"]
    assert not await ClientSession.objects.for_user(alice).aexists()
    await proxy.ask(ASKS)
    assert counted == proxy.newest
    assert blocks_of(counted[0])


@pytest.mark.usefixtures("allergy")
@pytest.mark.parametrize(("switch", "adds"), [("inject", True), ("capture", False), ("none", False)])
async def test_a_token_says_whether_memory_is_added(
    proxy: Proxy, alice: User, switch: str, adds: bool
) -> None:
    await proxy.token(alice, proxy_memory=switch)
    await proxy.ask(ASKS)
    assert bool(blocks_of(proxy.newest[0])) is adds


@pytest.mark.usefixtures("allergy")
async def test_nothing_is_added_for_users_who_switched_memory_off(proxy: Proxy, alice: User) -> None:
    await in_db(preferences_update, user_id=alice.pk, use_memory=False)
    await proxy.ask(ASKS)
    assert not blocks_of(proxy.newest[0])


@pytest.mark.usefixtures("allergy")
async def test_two_users_and_two_tokens_are_apart(proxy: Proxy, alice: User, bob: User) -> None:
    await proxy.ask(ASKS, session="same")
    first = proxy.newest[0]
    await proxy.token(bob)
    await proxy.ask(ASKS, session="same")
    assert not blocks_of(proxy.newest[0])
    await proxy.ask(ASKS, "Rice.", "Thanks.", session="same")
    assert not blocks_of(proxy.newest[0])
    await proxy.token(alice)
    await proxy.ask(ASKS, "Rice.", "Thanks.", session="same")
    assert not blocks_of(proxy.newest[0])
    assert blocks_of(first)
    assert await ClientSession.objects.for_user(alice).acount() == 2


async def test_a_deleted_note_is_not_added_again(proxy: Proxy, allergy: Memory, alice: User) -> None:
    other = "I cook my snacks in the evening."
    await in_db(memory_create, user_id=alice.pk, content=other, kind="fact", category=STANDING)
    await proxy.ask(ASKS, session="s")
    assert ALLERGY in blocks_of(proxy.newest[0])[0]
    await in_db(memory_delete, user_id=alice.pk, memory_id=allergy.pk)
    await proxy.ask(ASKS, "Rice.", "Thanks.", session="s")
    [block] = blocks_of(proxy.newest[0])
    assert ALLERGY not in block
    assert other in block
    rows = [row async for row in ProxyTurn.objects.for_user(alice)]
    assert not any(ALLERGY in row.block + json.dumps(row.shown) for row in rows)


async def test_a_purge_finds_what_was_brought_up(proxy: Proxy, allergy: Memory, alice: User) -> None:
    await proxy.ask(ASKS, session="s")
    await in_db(memory_purge, user_id=alice.pk, ids=[allergy.pk])
    rows = [row async for row in ProxyTurn.objects.for_user(alice)]
    assert rows
    assert not any("allergic" in row.block + json.dumps(row.shown) for row in rows)


async def test_the_rows_go_with_the_account(proxy: Proxy, allergy: Memory, alice: User) -> None:
    await proxy.ask(ASKS, session="s")
    await in_db(alice.delete)
    assert not await ProxyTurn.objects.unscoped().aexists()
    assert not await ClientSession.objects.unscoped().aexists()


@pytest.mark.usefixtures("allergy")
async def test_hooks_and_proxy_in_one_session_bring_a_note_up_once_between_them(
    proxy: Proxy, alice: User, api: Callable[[User], Client]
) -> None:
    def prompted(session: str) -> dict[str, Any]:
        event = {"session_id": session, "hook_event_name": "UserPromptSubmit", "prompt": ASKS}
        response = api(alice).post("/api/v1/hooks/claude-code/", event, content_type="application/json")
        answer: dict[str, Any] = response.json()
        return answer

    async def asked(session: str) -> list[str]:
        await proxy.ask(ASKS, headers={"x-claude-code-session-id": session})
        return blocks_of(proxy.newest[0])

    assert ALLERGY in str(await in_db(prompted, "hooks-first"))
    assert await asked("hooks-first") == []
    assert ALLERGY in str(await asked("proxy-first"))
    assert await in_db(prompted, "proxy-first") == {}
    assert ALLERGY in str(await asked("another"))
