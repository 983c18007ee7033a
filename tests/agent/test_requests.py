"""Requests to a model server, as they go over the wire."""

import json
from itertools import pairwise
from typing import Any

import pytest

from apps.accounts.models import User
from apps.agent.model import client as model_client
from apps.agent.model.client import ModelRequest, complete
from apps.agent.model.sdk import SdkModelClient
from apps.agent.models import ModelCall
from apps.core.db.pool import in_db
from apps.core.text import canonical_json
from tests.agent.turns import Turn, a_tool, answering
from tests.peers.anthropic_server import AnthropicServer, reply, tool

pytestmark = pytest.mark.django_db(transaction=True)

MARKER = {"type": "ephemeral"}


@pytest.fixture
def as_anthropic(peer: AnthropicServer, monkeypatch: pytest.MonkeyPatch) -> AnthropicServer:
    """The peer taken for Anthropic's own endpoint."""
    monkeypatch.setattr(model_client, "ANTHROPIC_URL", peer.url)
    return peer


def request_of(user: User, **changes: Any) -> ModelRequest:
    given = {"purpose": "chat", "model": "m", "messages": [{"role": "user", "content": "Hi"}], **changes}
    return ModelRequest(user_id=user.pk, **given)


async def test_a_custom_server_gets_the_plain_fields_alone(alice: User, peer: AnthropicServer) -> None:
    turn = Turn(alice, [a_tool("look", answering("ok"))])
    await turn.run()
    sent = peer.messages[0]
    assert sorted(sent) == ["max_tokens", "messages", "model", "stream", "system", "tools"]
    assert "cache_control" not in peer.requests[0].body.decode()
    assert peer.requests[0].headers["authorization"] == "Bearer key-of-the-tests"


async def test_anthropics_own_endpoint_gets_cache_markers_that_leave_messages_alone(
    alice: User, as_anthropic: AnthropicServer
) -> None:
    turn = Turn(alice, [a_tool("look", answering("ok"))])
    await turn.run()
    sent = as_anthropic.messages[0]
    assert sent["cache_control"] == MARKER
    assert sent["system"] == [{"type": "text", "text": "You are Izzy.", "cache_control": MARKER}]
    assert "cache_control" not in json.dumps([sent["messages"], sent["tools"]])


async def test_without_a_system_prompt_the_last_tool_is_marked(
    alice: User, as_anthropic: AnthropicServer
) -> None:
    definitions = [a_tool(name, answering("")).definition() for name in ("one", "two")]
    await complete(SdkModelClient(), request_of(alice, tools=definitions))
    sent = as_anthropic.messages[0]
    assert [tool.get("cache_control") for tool in sent["tools"]] == [None, MARKER]


async def test_no_sampling_parameters_and_no_empty_lists_are_sent(
    alice: User, peer: AnthropicServer
) -> None:
    await complete(SdkModelClient(), request_of(alice))
    assert sorted(peer.messages[0]) == ["max_tokens", "messages", "model", "stream"]


async def test_a_forced_tool_call_can_be_asked_for(alice: User, peer: AnthropicServer) -> None:
    peer.add(reply(tool("answer", {"ok": True})))
    choice = {"type": "tool", "name": "answer"}
    definition = a_tool("answer", answering("")).definition()
    response = await complete(
        SdkModelClient(), request_of(alice, tools=[definition], tool_choice=choice)
    )
    assert peer.messages[0]["tool_choice"] == choice
    assert response.tool_uses[0]["input"] == {"ok": True}


async def test_each_request_of_a_turn_begins_with_the_one_before(
    alice: User, peer: AnthropicServer
) -> None:
    peer.add(
        *(reply("Looking.", tool("look", {"b": 1, "a": {"d": 2, "c": 3}})) for _ in range(4)),
        reply("Done."),
    )
    turn = Turn(alice, [a_tool("look", answering({"z": 1, "y": "…"}))])
    await turn.run()
    bodies = [prefix(request.body) for request in peer.requests]
    for earlier, later in pairwise(bodies):
        assert later.startswith(earlier)
        assert len(later) > len(earlier)


def prefix(body: bytes) -> bytes:
    """The messages of a request up to the end of their list, as they were sent."""
    start = body.index(b'"messages":[')
    end = body.index(b'],"model":')
    return body[start:end]


async def test_the_order_of_keys_in_what_was_stored_does_not_matter(
    alice: User, peer: AnthropicServer
) -> None:
    blocks = [{"type": "tool_use", "id": "t1", "name": "look", "input": {"b": 1, "a": 2}}]
    shuffled = [{"input": {"a": 2, "b": 1}, "name": "look", "id": "t1", "type": "tool_use"}]
    for content in (blocks, shuffled):
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": content}]
        await complete(SdkModelClient(), request_of(alice, messages=messages))
    assert peer.requests[0].body == peer.requests[1].body


def test_canonical_json_sorts_every_level_and_keeps_text() -> None:
    value = {"b": [{"d": 1, "c": "ü…"}], "a": None}
    assert canonical_json(value) == '{"a":null,"b":[{"c":"ü…","d":1}]}'


async def test_connections_are_reused_between_rounds(alice: User, peer: AnthropicServer) -> None:
    peer.add(reply(tool("think", {"thought": "x"})), reply("Done."))
    await Turn(alice).run()
    assert len(peer.messages) == 2
    assert peer.connections == 1


async def test_a_call_that_is_taken_whole_has_a_row_without_error(
    alice: User, peer: AnthropicServer
) -> None:
    await complete(SdkModelClient(), request_of(alice, purpose="title"))
    call = await in_db(lambda: ModelCall.objects.for_user(alice).get())
    assert (call.purpose, call.error_code, call.stop_reason) == ("title", "", "end_turn")
