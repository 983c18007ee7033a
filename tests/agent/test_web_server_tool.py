"""Searches that Anthropic's endpoint runs itself: on a card, in rows, sent back as they came, with their sources."""

import json
from typing import Any

import pytest

from apps.accounts.models import User
from apps.agent.model import client as model_client
from apps.agent.models import ToolCall
from apps.agent.selectors import conversation_untrusted
from apps.agent.tools.base import Tool, find_tool
from apps.agent.tools.results import UNTRUSTED
from apps.agent.turn.events import (
    Response,
    ServerToolStart,
    TextDelta,
    ToolProgress,
    ToolResult,
    ToolStart,
)
from apps.core.db.pool import in_db
from tests.agent.turns import Turn, a_tool, answering
from tests.peers.anthropic_server import AnthropicServer, cited, reply, searched, tool

pytestmark = pytest.mark.django_db(transaction=True)

GARDEN = ("Tomatoes", "https://garden.test/tomatoes")
SHOP = ("Seeds [cheap](http://evil.test)", "https://shop.test/seeds")


@pytest.fixture
def as_anthropic(peer: AnthropicServer, monkeypatch: pytest.MonkeyPatch) -> AnthropicServer:
    """The peer taken for Anthropic's own endpoint."""
    monkeypatch.setattr(model_client, "ANTHROPIC_URL", peer.url)
    return peer


@pytest.fixture
def search() -> Tool:
    found = find_tool("web_search")
    assert found is not None
    return found


def said(turn: Turn) -> str:
    return "".join(event.text for event in turn.of(TextDelta))


async def test_the_endpoint_gets_its_own_tool_and_others_get_ours(
    alice: User, as_anthropic: AnthropicServer, search: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await Turn(alice, [search]).run()
    monkeypatch.setattr(model_client, "ANTHROPIC_URL", "https://api.anthropic.com")
    await Turn(alice, [search]).run()
    typed, ours = (sent["tools"] for sent in as_anthropic.messages)
    assert (
        typed[0].items() >= {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}.items()
    )
    assert "input_schema" not in typed[0]
    assert ours[0]["input_schema"]["required"] == ["query"]


@pytest.mark.parametrize("setting", ["ask", "never"])
async def test_who_wants_to_be_asked_is_asked(
    alice: User, as_anthropic: AnthropicServer, search: Tool, setting: str
) -> None:
    await Turn(alice, [search], approvals={"web_search": setting}).run()
    assert "input_schema" in as_anthropic.messages[0]["tools"][0]


async def test_the_operator_may_choose_another_engine(
    alice: User, as_anthropic: AnthropicServer, search: Tool, settings: Any
) -> None:
    settings.IZZY_WEB_SEARCH = "searxng"
    await Turn(alice, [search]).run()
    assert "input_schema" in as_anthropic.messages[0]["tools"][0]


async def test_a_search_is_told_while_the_answer_streams(
    alice: User, as_anthropic: AnthropicServer, search: Tool
) -> None:
    as_anthropic.add(
        reply(
            "Let me look.",
            searched("tomatoes water", GARDEN, SHOP),
            "Two litres",
            cited(" a day", GARDEN),
            ".",
        )
    )
    turn = Turn(alice, [search])
    await turn.run()
    kinds = [type(event) for event in turn.events if not isinstance(event, TextDelta)]
    assert kinds == [ServerToolStart, ToolProgress, ToolResult, Response]
    (start,), (progress,), (result,) = (
        turn.of(ServerToolStart),
        turn.of(ToolProgress),
        turn.of(ToolResult),
    )
    assert isinstance(start, ToolStart)
    assert (start.name, start.input) == ("web_search", {"query": "tomatoes water"})
    assert progress.data == {"status": "found", "count": 2}
    assert start.id == progress.id == result.id
    found = json.loads(result.result.removeprefix(UNTRUSTED))
    assert [page["url"] for page in found["results"]] == [GARDEN[1], SHOP[1]]
    assert "encrypted" not in result.result


async def test_the_text_reads_as_it_was_streamed_with_links_to_its_sources(
    alice: User, as_anthropic: AnthropicServer, search: Tool
) -> None:
    as_anthropic.add(
        reply(
            "Let me look.",
            searched("x", GARDEN),
            "Two litres",
            cited(" a day", GARDEN, GARDEN, SHOP),
            ".",
        )
    )
    turn = Turn(alice, [search])
    await turn.run()
    text = (
        "Let me look.\n\nTwo litres a day ([Tomatoes](<https://garden.test/tomatoes>), "
        "[Seeds  cheap (http://evil.test)](<https://shop.test/seeds>))."
    )
    assert said(turn) == text
    last = turn.events[-1]
    assert isinstance(last, Response)
    assert last.text == text
    assert [call["name"] for call in last.tool_calls] == ["web_search"]


async def test_the_blocks_go_back_byte_for_byte(
    alice: User, as_anthropic: AnthropicServer, search: Tool
) -> None:
    sent = reply("Let me look.", searched("x", GARDEN), cited("Two litres.", GARDEN))
    as_anthropic.add(sent)
    turn = Turn(alice, [search])
    await turn.run()
    turn.state.messages.append({"role": "user", "content": [{"type": "text", "text": "And beans?"}]})
    turn.state.rounds_done = 0
    await turn.run()
    assert as_anthropic.messages[1]["messages"][1]["content"] == sent.blocks
    first, second = (request.body for request in as_anthropic.requests)
    assert b'"encrypted_content":"encrypted+0/=="' in second
    assert second.startswith(first[: first.index(b'"messages":[') + 40])


async def test_a_search_stands_in_rows_and_taints_the_turn(
    alice: User, as_anthropic: AnthropicServer, search: Tool
) -> None:
    as_anthropic.add(reply(searched("x", GARDEN), "Two litres."))
    turn = Turn(alice, [search])
    await turn.run()
    row = await in_db(ToolCall.objects.for_user(alice.pk).get, turn_id=turn.turn_id)
    assert (row.name, row.state, row.untrusted, row.is_error) == ("web_search", "done", True, False)
    assert str(row.id) == turn.of(ServerToolStart)[0].id
    assert await in_db(
        conversation_untrusted, user_id=alice.pk, conversation_id=turn.state.conversation_id
    )


async def test_searches_and_calls_of_our_tools_in_one_answer_keep_apart(
    alice: User, as_anthropic: AnthropicServer, search: Tool
) -> None:
    as_anthropic.add(
        reply(searched("one", GARDEN), searched("two", SHOP), tool("look", {"at": 1})),
        reply("Both done."),
    )
    turn = Turn(alice, [search, a_tool("look", answering("seen"))])
    await turn.run()
    assert [result["content"] for result in turn.store.results] == ["seen"]
    rows = await in_db(lambda: list(ToolCall.objects.for_user(alice.pk).order_by("position")))
    assert [row.name for row in rows] == ["look", "web_search", "web_search"]
    assert isinstance(turn.events[-1], Response)


async def test_a_search_that_failed_is_shown_as_such(
    alice: User, as_anthropic: AnthropicServer, search: Tool
) -> None:
    as_anthropic.add(reply(searched("x", error="max_uses_exceeded"), "I could not look."))
    turn = Turn(alice, [search])
    await turn.run()
    (result,) = turn.of(ToolResult)
    assert result.is_error
    assert "too many" in result.result


async def test_a_paused_search_goes_on_as_one_message_with_one_card(
    alice: User, as_anthropic: AnthropicServer, search: Tool
) -> None:
    call, result = searched("x", GARDEN)
    as_anthropic.add(reply("Let me look.", call, stop_reason="pause_turn"), reply(result, "Two litres."))
    turn = Turn(alice, [search])
    await turn.run()
    sent = as_anthropic.messages[1]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant"]
    assert sent[1]["content"][-1] == call
    assert len(turn.of(ServerToolStart)) == len(turn.of(ToolResult)) == 1
    last = turn.events[-1]
    assert isinstance(last, Response)
    assert last.text == "Let me look.\n\nTwo litres."
    assert [message["role"] for message in turn.state.messages] == ["user", "assistant"]


async def test_a_search_that_was_broken_off_is_not_sent_again(
    alice: User, as_anthropic: AnthropicServer, search: Tool
) -> None:
    call, _ = searched("x", GARDEN)
    turn = Turn(alice, [search], "And now?")
    asked = {"role": "user", "content": "Look it up."}
    turn.state.messages[:0] = [
        asked,
        {"role": "assistant", "content": [{"type": "text", "text": "Yes."}, call]},
    ]
    await turn.run()
    assert as_anthropic.messages[0]["messages"][1]["content"] == [{"type": "text", "text": "Yes."}]


async def test_another_endpoint_gets_what_was_found_as_text(
    alice: User, peer: AnthropicServer, search: Tool
) -> None:
    turn = Turn(alice, [search], "And now?")
    blocks = reply(searched("x", GARDEN), cited("Two litres.", GARDEN)).blocks
    asked = {"role": "user", "content": "Look it up."}
    turn.state.messages[:0] = [asked, {"role": "assistant", "content": blocks}]
    await turn.run()
    sent = peer.messages[0]["messages"][1]["content"]
    assert {block["type"] for block in sent} == {"text"}
    assert sent[0]["text"] == "(Found on the web: Tomatoes <https://garden.test/tomatoes>.)"
    assert sent[1] == {"type": "text", "text": "Two litres."}
