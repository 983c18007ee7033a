"""The real SDK and raw streams through a whole Izzy, beside the same upstream without it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import pytest
from anthropic import beta_tool

from tests.gateway.proxy.driving import MODEL, OWN_KEY, blocks_of
from tests.peers.anthropic_server import AnthropicServer, Reply, failure, reply, thinking, tool
from tests.peers.site import Site
from tests.waiting import PATIENCE, eventually, until

pytestmark = pytest.mark.long

ALLERGY = "I am allergic to peanuts."
ASKS = "Which snack with peanuts should I cook tonight?"
STREAM = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","usage":{"input_tokens":1}}}\n\n'
    b': a comment\n\nevent: ping\ndata: {"type": "ping"}\n\n'
    b'event: of_the_future\ndata: {"type":"of_the_future","n":1.50}\n\n'
    b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
)


@pytest.fixture(scope="module")
def upstream() -> Iterator[AnthropicServer]:
    with AnthropicServer.in_thread(turns_only=True) as server:
        yield server


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, upstream: AnthropicServer) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"), ANTHROPIC_BASE_URL=upstream.url)
    with site.client() as client:
        note = {"content": ALLERGY, "kind": "fact", "importance": 5}
        assert client.post("/api/v1/memories/", json=note).status_code == 201
        eventually(lambda: _is_warm(client, site, upstream))
    yield site
    site.close()


def _is_warm(client: httpx.Client, site: Site, upstream: AnthropicServer) -> bool:
    """Whether memory answers in time by now."""
    body = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": ASKS}]}
    own = {"x-izzy-token": site.token, "authorization": f"Bearer {OWN_KEY}"}
    client.post("/v1/messages/count_tokens", json=body, headers=own)
    return bool(blocks_of(upstream.requests[-1].json["messages"][0]))


@pytest.fixture(autouse=True)
def _nothing_left(upstream: AnthropicServer) -> Iterator[None]:
    upstream.script.clear()
    yield
    upstream.script.clear()


def through(site: Site, **options: Any) -> anthropic.Anthropic:
    headers = {"X-Izzy-Token": site.token}
    url = f"http://127.0.0.1:{site.port}"
    return anthropic.Anthropic(
        base_url=url, api_key=OWN_KEY, default_headers=headers, max_retries=0, **options
    )


def bare(upstream: AnthropicServer) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=upstream.url, api_key=OWN_KEY, max_retries=0)


def asked(text: str = ASKS, **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 500, "messages": [{"role": "user", "content": text}], **fields}


def both(site: Site, upstream: AnthropicServer) -> Iterator[anthropic.Anthropic]:
    yield bare(upstream)
    yield through(site)


def answers() -> Reply:
    call = tool("weather", {"city": "Graz"}, id="toolu_1")
    return reply(thinking("Let me see."), "It depends.", call, message_id="msg_same")


def test_an_answer_is_the_same(site: Site, upstream: AnthropicServer) -> None:
    found = []
    for client in both(site, upstream):
        upstream.add(answers())
        message = client.messages.create(**asked())
        found.append(message.model_copy(update={"usage": None}).to_json())
    assert found[0] == found[1]


def test_a_stream_is_the_same_event_for_event(site: Site, upstream: AnthropicServer) -> None:
    found: list[list[str]] = []
    for client in both(site, upstream):
        upstream.add(answers())
        with client.messages.stream(**asked()) as stream:
            events: list[dict[str, Any]] = [dict(event.to_dict()) for event in stream]
        events[0]["message"].pop("usage", None)
        events[-1].get("message", {}).pop("usage", None)
        found.append([json.dumps(event, sort_keys=True, default=str) for event in events])
    assert found[0] == found[1]
    assert len(found[0]) > 8


def test_the_tool_runner_works_and_requests_differ_in_user_turns_alone(
    site: Site, upstream: AnthropicServer
) -> None:
    @beta_tool
    def weather(city: str) -> str:
        """Tell the weather.

        Args:
            city: Where.
        """
        return f"It rains in {city}."

    sent, said = [], []
    for client in both(site, upstream):
        call = tool("weather", {"city": "Graz"}, id="toolu_1")
        upstream.add(
            reply("Let me look.", call, message_id="msg_a"), reply("Take peanuts.", message_id="msg_b")
        )
        before = len(upstream.messages)
        runner = client.beta.messages.tool_runner(**asked(), tools=[weather], thread=False)
        said.append([message.content for message in runner])
        sent.append(upstream.messages[before:])
    assert [str(each) for each in said[0]] == [str(each) for each in said[1]]
    assert len(sent[0]) == len(sent[1]) == 2
    for alone, with_memory in zip(*sent, strict=True):
        without = {**with_memory, "messages": [_stripped(one) for one in with_memory["messages"]]}
        plain = {**alone, "messages": [_stripped(one) for one in alone["messages"]]}
        assert without == plain
        others = [one for one in with_memory["messages"] if one["role"] != "user"]
        assert others == [one for one in alone["messages"] if one["role"] != "user"]
    assert sent[1][0]["messages"] == sent[1][1]["messages"][:1]


def _stripped(message: dict[str, Any]) -> dict[str, Any]:
    content = message["content"]
    listed = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {
        **message,
        "content": [one for one in listed if one.get("text", "") not in blocks_of(message)],
    }


def test_tokens_are_counted_and_models_listed(site: Site, upstream: AnthropicServer) -> None:
    client = through(site)
    alone = bare(upstream).messages.count_tokens(model=MODEL, messages=asked()["messages"])
    counted = client.messages.count_tokens(model=MODEL, messages=asked()["messages"])
    assert counted.input_tokens >= alone.input_tokens  # with what memory would add
    assert [model.id for model in client.models.list()] == upstream.models
    assert client.models.retrieve(upstream.models[0]).id == upstream.models[0]


def test_what_was_said_in_one_session_comes_up_in_another(site: Site, upstream: AnthropicServer) -> None:
    told = "My sister Ada lives in Lisbon."
    client = through(site)
    client.messages.create(**asked(told), extra_headers={"X-Izzy-Session": "a"})

    def comes_up() -> bool:
        """Asks in a new session, as often as this machine is too slow for memory."""
        headers = {"X-Izzy-Session": f"b-{len(upstream.requests)}"}
        question = asked("Where does my sister Ada live?")
        with client.messages.stream(**question, extra_headers=headers) as stream:
            stream.until_done()
        return any(told in block for block in blocks_of(upstream.messages[-1]["messages"][0]))

    eventually(comes_up)


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, "invalid_request_error"), (429, "rate_limit_error"), (529, "overloaded_error")],
)
def test_errors_are_the_same(site: Site, upstream: AnthropicServer, status: int, kind: str) -> None:
    found = []
    for client in both(site, upstream):
        upstream.add(
            Reply(
                status=status,
                body=json.dumps(failure(status, kind).error()).encode(),
                headers={"retry-after": "7", "request-id": "req_1", "x-future": "1"},
            )
        )
        with pytest.raises(anthropic.APIStatusError) as caught:
            client.messages.create(**asked())
        answer = caught.value.response
        named = {name: answer.headers.get(name) for name in ("retry-after", "request-id", "x-future")}
        found.append((type(caught.value), caught.value.body, named))
    assert found[0] == found[1]


def test_an_answer_that_breaks_off_breaks_off_in_the_same_way(
    site: Site, upstream: AnthropicServer
) -> None:
    found = []
    for client in both(site, upstream):
        upstream.add(reply("One two three four.", cut_after=4))
        events = []
        with pytest.raises(Exception) as caught, client.messages.stream(**asked()) as stream:
            events += [event.type for event in stream]
        found.append(type(caught.value))
    assert found[0] is found[1]


async def raw(site: Site, url: str = "", **fields: Any) -> tuple[int, bytes]:
    headers = {"x-izzy-token": site.token, "authorization": f"Bearer {OWN_KEY}"}
    async with httpx.AsyncClient(timeout=PATIENCE, headers=headers) as client:
        address = url or f"http://127.0.0.1:{site.port}"
        answer = await client.post(f"{address}/v1/messages?beta=true", json=asked(**fields))
        return answer.status_code, answer.content


async def test_bytes_of_a_stream_are_the_same_whatever_they_say(
    site: Site, upstream: AnthropicServer
) -> None:
    upstream.add(Reply(body=STREAM, headers={"content-type": "text/event-stream"}))
    assert await raw(site, stream=True) == (200, STREAM)


async def test_what_has_come_is_passed_on_while_the_rest_is_waited_for(
    site: Site, upstream: AnthropicServer
) -> None:
    held = reply("One two three.", hold_after=3)
    upstream.add(held)
    headers = {"x-izzy-token": site.token, "authorization": f"Bearer {OWN_KEY}"}
    async with (
        httpx.AsyncClient(timeout=PATIENCE, headers=headers) as client,
        client.stream(
            "POST", f"http://127.0.0.1:{site.port}/v1/messages", json=asked(stream=True)
        ) as answer,
    ):
        seen = ""
        async for line in answer.aiter_lines():
            seen += line
            if "One" in seen and not held.release.is_set():
                assert "message_stop" not in seen
                held.release.set()
        assert "message_stop" in seen


async def test_a_client_that_goes_away_ends_the_upstreams_answer(
    site: Site, upstream: AnthropicServer
) -> None:
    before = upstream.broken_by_client
    upstream.add(reply("word " * 2000, delay=0.01))
    headers = {"x-izzy-token": site.token, "authorization": f"Bearer {OWN_KEY}"}
    async with (
        httpx.AsyncClient(timeout=PATIENCE, headers=headers) as client,
        client.stream(
            "POST", f"http://127.0.0.1:{site.port}/v1/messages", json=asked(stream=True)
        ) as answer,
    ):
        async for _ in answer.aiter_raw():
            break
    await until(lambda: upstream.broken_by_client > before)


async def test_a_megabyte_and_two_hundred_streams_at_once_come_whole(
    site: Site, upstream: AnthropicServer
) -> None:
    upstream.add(reply("x" * 1_000_000, message_id="msg_large"))
    status, body = await raw(site, stream=True)
    assert status == 200
    assert body.count(b"x") >= 1_000_000
    assert b"message_stop" in body
    upstream.add(*(reply(f"Answer {number}.", delay=0.01) for number in range(200)))
    answered = await asyncio.gather(*(raw(site, text=f"Question {n}?", stream=True) for n in range(200)))
    assert [body for status, body in answered if status != 200] == []
    assert all(b"message_stop" in body for _, body in answered)
    numbers = {number for number in range(200) for _, body in answered if f'"{number}.'.encode() in body}
    assert numbers == set(range(200))


async def test_a_request_of_six_megabytes_passes_and_one_over_the_limit_is_refused_as_anthropic_does(
    site: Site,
) -> None:
    status, _ = await raw(site, text="word " * 1_200_000)
    assert status == 200
    status, body = await raw(site, text="word " * 6_500_000)
    assert status == 413
    assert json.loads(body)["error"]["type"] == "request_too_large"


def test_no_key_is_in_the_log_or_in_the_database(site: Site, tmp_path: Path) -> None:
    through(site).messages.create(**asked())
    for file in site.log.parent.rglob("*"):
        if file.is_file():
            assert OWN_KEY.encode() not in file.read_bytes(), file
