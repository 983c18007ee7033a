"""A turn whose model fails: one clear error, and nothing that was stored is lost."""

import json
import time
from collections.abc import Callable
from datetime import datetime
from email.utils import formatdate
from typing import Any

import pytest

from apps.accounts.models import User
from apps.agent.model.sdk import SdkModelClient
from apps.agent.models import ModelCall
from apps.agent.turn.events import ModelRetry, Response, TurnFailed
from apps.core.db.pool import in_db
from tests.agent.turns import Turn, a_tool, answering
from tests.peers.anthropic_server import AnthropicServer, Reply, failure, reply, tool

pytestmark = pytest.mark.django_db(transaction=True)


def sse(data: str) -> Reply:
    """A stream of one hand-written event."""
    kind = json.loads(data)["type"] if data.startswith("{") else "message_start"
    body = f"event: {kind}\ndata: {data}\n\n".encode()
    return Reply(body=body, headers={"content-type": "text/event-stream"})


def only_call(user: User) -> ModelCall:
    return ModelCall.objects.for_user(user).get()


async def row(user: User) -> ModelCall:
    return await in_db(only_call, user)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (failure(400, "invalid_request_error", "messages: bad"), "model_request"),
        (failure(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"), "context_too_long"),
        (failure(413, "request_too_large"), "context_too_long"),
        (failure(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 9 + 2 > 8"), "context_too_long"),
        (failure(400, "exceed_context_size_error", "request (9 tokens) exceeds what there is (8 tokens)"), "context_too_long"),
        (failure(500, "server_error", "Context size has been exceeded."), "context_too_long"),
        (reply("", error_after=1, error_type="server_error", error_message="Context size has been exceeded."), "context_too_long"),
        (failure(401, "authentication_error"), "model_auth"),
        (failure(402, "billing_error"), "model_billing"),
        (failure(403, "permission_error"), "model_forbidden"),
        (failure(404, "not_found_error"), "model_not_found"),
        (failure(429, "rate_limit_error", retry_after="inf", x_should_retry="false"), "rate_limited"),
        (failure(429, "rate_limit_error", retry_after="nan", x_should_retry="false"), "rate_limited"),
        (failure(429, "rate_limit_error", retry_after="90", x_should_retry="false"), "rate_limited"),
        (failure(500, "api_error", x_should_retry="false"), "model_unavailable"),
        (failure(504, "timeout_error", x_should_retry="false"), "model_timeout"),
        (failure(529, "overloaded_error", x_should_retry="false"), "overloaded"),
        (Reply(status=200, body=b"<html>a router's page</html>"), "bad_response"),
        (Reply(status=200, body=b"event: message_start\ndata: {not json\n\n", headers={"content-type": "text/event-stream"}), "bad_response"),
        (sse('{"type": "message_start", "message": null}'), "bad_response"),
        (sse('{"type": "content_block_start", "index": 0, "content_block": null}'), "bad_response"),
        (sse("[]"), "bad_response"),
        (reply("Half an ans", cut_after=3), "stream_cut"),
        (reply("Half an ans", cut_after=3, cut="end"), "stream_cut"),
        (reply("Half an ans", error_after=3, error_type="overloaded_error"), "overloaded"),
        (reply("Half an ans", error_after=3, error_type="rate_limit_error"), "rate_limited"),
        (reply("Half an ans", error_after=3, error_type="api_error"), "model_unavailable"),
        (reply("I would rath", stop_reason="refusal"), "refusal"),
        (reply(), "empty_answer"),
        (reply(" \n"), "empty_answer"),
    ],
)  # fmt: skip
async def test_a_failed_answer_ends_in_one_error_and_stores_no_message(
    alice: User, peer: AnthropicServer, answer: Reply, code: str
) -> None:
    peer.add(answer)
    turn = Turn(alice)
    await turn.run()
    last = turn.events[-1]
    assert isinstance(last, TurnFailed)
    assert last.code == code
    assert last.message
    assert not any(isinstance(event, TurnFailed | Response) for event in turn.events[:-1])
    assert turn.store.messages == []
    call = await row(alice)
    if code not in ("refusal", "empty_answer"):
        assert call.error_code == code
    assert len(peer.messages) == 1


@pytest.mark.parametrize(
    ("status", "kind", "said", "end"),
    [
        (400, "invalid_request_error", "no such key: key-of-the-tests", "no such key: [secret removed]"),
        (403, "permission_error", "", ": no reason given."),
    ],
)
async def test_what_a_server_says_is_passed_on_without_the_key_and_leaves_no_sentence_open(
    alice: User, peer: AnthropicServer, status: int, kind: str, said: str, end: str
) -> None:
    peer.add(failure(status, kind, said))
    turn = Turn(alice)
    await turn.run()
    last = turn.events[-1]
    assert isinstance(last, TurnFailed)
    assert last.message.endswith(end)


EVENTS = len(list(reply("The whole answer.").events("", 0)))


@pytest.mark.parametrize(
    "fault", [{"cut_after": EVENTS}, {"hold_after": EVENTS}, {"error_after": EVENTS}]
)
async def test_an_answer_that_is_whole_is_kept_whatever_the_connection_does_then(
    alice: User, peer: AnthropicServer, fault: dict[str, int]
) -> None:
    answer = reply("The whole answer.", **fault)
    peer.add(answer)
    turn = Turn(alice)
    try:
        await turn.run()
    finally:
        answer.release.set()
    last = turn.events[-1]
    assert isinstance(last, Response)
    assert last.text == "The whole answer."
    call = await row(alice)
    assert (call.error_code, call.stop_reason) == ("", "end_turn")
    assert len(peer.messages) == 1


async def test_a_connection_is_used_again_after_a_whole_answer(
    alice: User, peer: AnthropicServer
) -> None:
    peer.add(reply("One."), reply("Two."))
    client = SdkModelClient()
    for _ in range(2):
        await Turn(alice, client=client).run()
    assert (len(peer.messages), peer.connections) == (2, 1)


async def test_what_was_produced_before_a_cut_can_be_kept(alice: User, peer: AnthropicServer) -> None:
    peer.add(reply("Half an answer", cut_after=4))
    turn = Turn(alice)
    await turn.run()
    assert turn.state.partial_blocks == [{"type": "text", "text": "Half an "}]


async def test_a_cut_in_a_later_round_keeps_the_rounds_before(
    alice: User, peer: AnthropicServer
) -> None:
    peer.add(reply(tool("look")), reply("Half", cut_after=2))
    turn = Turn(alice, [a_tool("look", answering("seen"))])
    await turn.run()
    assert turn.store.roles == ["assistant", "user"]
    assert isinstance(turn.events[-1], TurnFailed)


async def test_a_short_429_and_a_529_are_waited_out(alice: User, peer: AnthropicServer) -> None:
    peer.add(
        failure(429, "rate_limit_error", retry_after="0.01"),
        failure(529, "overloaded_error", retry_after="0.01"),
        reply("Here I am."),
    )
    turn = Turn(alice)
    await turn.run()
    assert isinstance(turn.events[-1], Response)
    assert len(peer.messages) == 3
    retries = [event for event in turn.events if isinstance(event, ModelRetry)]
    assert [(event.code, event.seconds) for event in retries] == [
        ("rate_limited", 0.01),
        ("overloaded", 0.01),
    ]
    assert datetime.fromisoformat(retries[0].at) < datetime.fromisoformat(retries[1].at)


@pytest.mark.parametrize(
    "when",
    [
        lambda: {"retry_after": "3600"},
        lambda: {"retry_after_ms": "3600000"},
        lambda: {"retry_after": formatdate(time.time() + 3600, usegmt=True)},
    ],
    ids=["seconds", "milliseconds", "date"],
)
async def test_a_lasting_429_tells_the_user_when_to_come_back(
    alice: User, peer: AnthropicServer, when: Callable[[], dict[str, str]]
) -> None:
    peer.add(failure(429, "rate_limit_error", **when()))
    turn = Turn(alice)
    await turn.run()
    last = turn.events[-1]
    assert isinstance(last, TurnFailed)
    assert last.message == "The model service asks to slow down. Try again in 60 minutes."
    assert len(peer.messages) == 1, "an hour must not be waited for"


async def test_a_server_that_is_not_there_is_named(
    alice: User, peer: AnthropicServer, settings: Any
) -> None:
    settings.ANTHROPIC_BASE_URL = "http://127.0.0.1:1"
    turn = Turn(alice)
    await turn.run()
    last = turn.events[-1]
    assert isinstance(last, TurnFailed)
    assert last.code == "model_unavailable"
    assert "http://127.0.0.1:1" in last.message


async def test_a_key_that_fits_no_header_is_an_error_like_others(
    alice: User, peer: AnthropicServer, settings: Any
) -> None:
    settings.ANTHROPIC_API_KEY = "sk-\udcff"
    turn = Turn(alice)
    await turn.run()
    last = turn.events[-1]
    assert isinstance(last, TurnFailed)
    assert last.code == "model_auth"


async def test_a_silent_server_is_given_up_on(alice: User, peer: AnthropicServer, settings: Any) -> None:
    settings.IZZY_MODEL_TIMEOUT = 0.2
    held = reply("Never", hold_after=1)
    peer.add(held)
    turn = Turn(alice)
    try:
        await turn.run()
    finally:
        held.release.set()
    last = turn.events[-1]
    assert isinstance(last, TurnFailed)
    assert last.code == "model_timeout"
