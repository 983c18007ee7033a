"""With REDIS_URL two web processes are one Izzy: what happens in one is seen in the tabs of the other."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks._network import WebSocket
from tests.peers.site import Site
from tests.waiting import PATIENCE

pytestmark = pytest.mark.long


@pytest.fixture
def site(tmp_path: Path, redis_url: str) -> Iterator[Site]:
    site = Site(tmp_path, processes=2, REDIS_URL=redis_url)
    yield site
    site.close()


def post(client: httpx.Client, path: str, body: dict[str, object]) -> httpx.Response:
    return client.post(path, json=body)


async def test_a_tab_at_one_process_sees_the_turn_that_the_other_runs(site: Site) -> None:
    first, second = site.ports
    with site.client(second) as client:
        created = await asyncio.to_thread(post, client, "/api/v1/conversations/", {"title": "Shared"})
        conversation = created.json()["id"]
        tab = await WebSocket.connect("127.0.0.1", first, "/ws/chat/", site.headers)
        await tab.send(json.dumps({"type": "open", "conversation": conversation}))
        seen = [json.loads(await tab.receive() or "{}")["type"]]
        message = {
            "conversation": conversation,
            "message": "remember that I like plums",
            "stream": False,
        }
        answer = await asyncio.to_thread(post, client, "/api/v1/chat/", message)
    assert answer.status_code == 200
    while "response" not in seen:
        frame = await asyncio.wait_for(tab.receive(), PATIENCE)
        seen.append(json.loads(frame or "{}")["type"])
    assert seen[0] == "snapshot"
    assert {"turn_queued", "turn_started", "text_delta", "tool_start", "tool_result", "response"} <= set(
        seen
    )
    tab.close()
