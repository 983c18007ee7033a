"""The websocket of a real server: who gets in, and what it takes."""

import asyncio
import contextlib
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks._network import TEXT, WebSocket
from tests.chat.server import Server
from tests.peers.anthropic_server import AnthropicServer, reply
from tests.waiting import PATIENCE


@pytest.fixture(scope="module")
def server(peer: AnthropicServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("server")
    server = Server(folder, peer.url)
    try:
        yield server.start()
    finally:
        server.kill()


async def connect(server: Server, **headers: str) -> WebSocket:
    return await WebSocket.connect("127.0.0.1", server.port, "/ws/chat/", headers)


async def frame(page: WebSocket) -> dict[str, Any]:
    text = await asyncio.wait_for(page.receive(), PATIENCE)
    assert text is not None
    loaded: dict[str, Any] = json.loads(text)
    return loaded


async def test_a_program_talks_with_its_token(server: Server, peer: AnthropicServer) -> None:
    peer.script.clear()
    peer.add(reply("Hello **there**."))
    page = await connect(server, Authorization=f"Bearer {server.token}")
    await page.send(json.dumps({"type": "message", "text": "Hi", "client_id": "ws1"}))
    seen = [await frame(page)]
    while (
        seen[-1]["type"] != "title"
    ):  # made after the answer, by a request that must not meet another test's script
        seen.append(await frame(page))
    page.close()
    assert (seen[0]["type"], seen[0]["client_id"]) == ("turn_queued", "ws1")
    assert (
        "".join(event["text"] for event in seen if event["type"] == "text_delta") == "Hello **there**."
    )
    assert [event for event in seen if event["type"] == "html"][-1][
        "html"
    ] == "<p>Hello <strong>there</strong>.</p>"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Authorization": "Bearer izzy_wrong"},
        {"Authorization": "Basic YTpi"},
        {"Origin": "https://evil.example", "Cookie": "izzy_session=forged"},
    ],
)
async def test_nobody_else_gets_in(server: Server, headers: dict[str, str]) -> None:
    with pytest.raises(ConnectionError, match="403"):
        await connect(server, **headers)


async def test_the_own_origin_without_a_session_is_sent_away(server: Server) -> None:
    with pytest.raises(ConnectionError, match="403"):
        await connect(server, Origin=f"http://127.0.0.1:{server.port}")


async def test_invalid_utf8_costs_only_the_one_that_sent_it(server: Server) -> None:
    good = await connect(server, Authorization=f"Bearer {server.token}")
    bad = await connect(server, Authorization=f"Bearer {server.token}")
    bad._write(TEXT, b"\xff\xfe{")
    await bad._writer.drain()
    await good.send('{"type": "ping"}')
    assert await frame(good) == {"type": "pong"}
    good.close()
    bad.close()


async def test_a_frame_above_the_limit_is_refused_and_the_socket_lives(server: Server) -> None:
    page = await connect(server, Authorization=f"Bearer {server.token}")
    await page.send(json.dumps({"type": "message", "text": "x" * 600_000}))
    assert (await frame(page))["code"] == "too_large"
    await page.send('{"type": "ping"}')
    assert await frame(page) == {"type": "pong"}
    page.close()


async def test_ten_megabytes_cost_at_most_the_socket_that_sent_them(server: Server) -> None:
    good = await connect(server, Authorization=f"Bearer {server.token}")
    huge = await connect(server, Authorization=f"Bearer {server.token}")
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        await huge.send(json.dumps({"type": "message", "text": "x" * 10_000_000}))
        answer = await asyncio.wait_for(huge.receive(), PATIENCE)
        assert answer is None or json.loads(answer)["code"] == "too_large"
    await good.send('{"type": "ping"}')
    assert await frame(good) == {"type": "pong"}
    good.close()


async def test_a_connection_that_breaks_in_a_frame_is_nobodys_problem(server: Server) -> None:
    good = await connect(server, Authorization=f"Bearer {server.token}")
    broken = await connect(server, Authorization=f"Bearer {server.token}")
    broken._writer.write(struct.pack(">BBH", 0x81, 0x80 | 126, 60_000) + b"abcd" + b"half")
    await broken._writer.drain()
    broken._writer.transport.abort()
    await good.send('{"type": "ping"}')
    assert await frame(good) == {"type": "pong"}
    good.close()


def test_server_sent_events_come_one_by_one(server: Server, peer: AnthropicServer) -> None:
    peer.script.clear()
    held = reply("One two three", hold_after=4)
    peer.add(held)
    with server.chat("Count") as stream:
        words = []
        for event in stream:
            if event["type"] == "text_delta":
                words.append(event["text"])
                if "".join(words) == "One two ":  # in one piece or in two
                    held.release.set()
        assert event["type"] == "response"
    assert "".join(words) == "One two three"


def test_the_schema_describes_the_chat(server: Server) -> None:
    with server.http as client:
        schema = client.get("/api/schema/?format=json").json()
    for path in ("chat/", "ingest/", "conversations/", "conversations/{conversation_id}/messages/"):
        assert f"/api/v1/{path}" in schema["paths"]
    content = schema["paths"]["/api/v1/chat/"]["post"]["responses"]["200"]["content"]
    assert set(content) == {"application/json", "text/event-stream"}


async def test_what_is_more_than_the_system_takes_at_once_arrives_whole(
    server: Server, peer: AnthropicServer
) -> None:
    """Frames larger than a socket's buffers, for a reader who comes late to them."""
    peer.script.clear()
    said = " ".join(f"word{number}" for number in range(9_000))
    page = await connect(server, Authorization=f"Bearer {server.token}")
    await page.send(json.dumps({"type": "message", "text": said, "client_id": "long1"}))
    seen = [await frame(page)]
    while seen[-1]["type"] not in {"response", "error"}:
        seen.append(await frame(page))
    assert seen[-1]["type"] == "response"
    late = await connect(server, Authorization=f"Bearer {server.token}")
    for _ in range(8):
        await late.send(json.dumps({"type": "open", "conversation": seen[0]["conversation"]}))
    await late.send('{"type": "ping"}')
    came = [await frame(late) for _ in range(9)]
    assert came[-1] == {"type": "pong"}
    assert all(snapshot["messages"] == came[0]["messages"] for snapshot in came[:-1])
    assert said in json.dumps(came[0])
    late.close()
    page.close()
