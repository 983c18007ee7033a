"""Several web processes behind one port, as `serve` starts them: real processes, real signals."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings

from benchmarks._network import WebSocket
from benchmarks._processes import Served
from tests.peers.anthropic_server import AnthropicServer, reply
from tests.peers.databases import Database
from tests.peers.ports import free_port
from tests.peers.prepared import prepared
from tests.waiting import PATIENCE, eventually

LISTENING = "0A"
FIGURES = "figures-for-the-test"
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, peer: AnthropicServer) -> Iterator[Served]:
    if sys.platform != "linux":
        pytest.skip("only Linux shares a port fairly")
    folder, port = tmp_path_factory.mktemp("shared"), free_port()
    environment = os.environ | prepared().copy(folder)
    environment |= {
        "DJANGO_SETTINGS_MODULE": "izzysite.settings",
        "IZZY_DATA_DIR": str(folder),
        "IZZY_PORT": str(port),
        "IZZY_WEB_PROCESSES": "2",
        "IZZY_DRAIN_SECONDS": str(int(PATIENCE)),
        "IZZY_METRICS_TOKEN": FIGURES,
        "ANTHROPIC_BASE_URL": peer.url,
    }
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "serve"],
            cwd=settings.BASE_DIR,
            env=environment,
            stdout=log,
            stderr=log,
        )
    served = Served(port, folder, [prepared().token], process.pid)
    try:
        eventually(lambda: "share it" in served.log or process.poll() is not None, lambda: served.log)
        assert process.poll() is None, served.log
        yield served
    finally:
        process.terminate()
        process.wait(PATIENCE)


def listening(served: Served) -> int:
    """How many processes take up connections now; one that was killed does for a moment longer."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return sum(row[1].endswith(f":{served.port:04X}") and row[3] == LISTENING for row in rows)


def get(served: Served, path: str) -> httpx.Response:
    headers = {"Authorization": f"Bearer {served.tokens[0]}"}
    return httpx.get(f"http://127.0.0.1:{served.port}{path}", headers=headers, timeout=PATIENCE)


async def page_at(served: Served) -> WebSocket:
    headers = {"Authorization": f"Bearer {served.tokens[0]}"}
    return await WebSocket.connect("127.0.0.1", served.port, "/ws/chat/", headers)


async def until(page: WebSocket, kind: str) -> dict[str, Any]:
    while (text := await asyncio.wait_for(page.receive(), PATIENCE)) is not None:
        frame: dict[str, Any] = json.loads(text)
        if frame["type"] == kind:
            return frame
    raise AssertionError(f"the socket was closed ({page.closed}) before {kind}")


def test_when_one_is_killed_the_other_takes_all_connections_and_it_comes_back(served: Served) -> None:
    assert "2 web processes share it" in served.log
    eventually(lambda: listening(served) == 2)
    first, second = served.processes("web")
    os.kill(first, signal.SIGKILL)
    eventually(lambda: listening(served) == 1)
    assert [get(served, "/healthz").status_code for _ in range(20)] == [200] * 20
    eventually(lambda: listening(served) == 2, lambda: served.log)
    assert second in served.processes("web")


def mcp(served: Served, body: dict[str, Any], session: str = "", token: str = "") -> httpx.Response:
    """A request of the protocol with sessions, over a connection of its own."""
    headers = {
        "Authorization": f"Bearer {token or served.tokens[0]}",
        "Accept": "application/json, text/event-stream",
    } | ({"Mcp-Session-Id": session} if session else {})
    address = f"http://127.0.0.1:{served.port}/mcp"
    return httpx.post(address, json={"jsonrpc": "2.0", **body}, headers=headers, timeout=PATIENCE)


def mcp_session(served: Served) -> str:
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    answer = mcp(served, {"id": 1, "method": "initialize", "params": params})
    assert answer.status_code == 200, answer.text
    session = str(answer.headers["mcp-session-id"])
    assert mcp(served, {"method": "notifications/initialized"}, session).status_code == 202
    return session


def counted(served: Served) -> float:
    """Requests to /mcp that the figures of all processes have."""
    headers = {"Authorization": f"Bearer {FIGURES}"}
    address = f"http://127.0.0.1:{served.port}/metrics"
    lines = httpx.get(address, headers=headers, timeout=PATIENCE).text.splitlines()
    mcp = [line for line in lines if line.startswith("izzy_requests_total{") and 'route="mcp"' in line]
    return sum(float(line.rpartition(" ")[2]) for line in mcp)


def test_a_session_of_mcp_is_found_by_whichever_process_takes_the_connection(served: Served) -> None:
    eventually(lambda: listening(served) == 2)
    before, session = counted(served), mcp_session(served)
    for number in range(2, 18):  # all of them at the process that has the session: one in 65,000
        answer = mcp(served, {"id": number, "method": "tools/list"}, session)
        assert answer.status_code == 200, answer.text
        assert "memory_search" in answer.text
        assert mcp(served, {"id": number, "method": "ping"}, session, "izzy_no").status_code == 401
    eventually(
        lambda: counted(served) - before == 2 + 2 * 16
    )  # each once, also where another process answered it


def test_a_session_of_mcp_whose_process_has_gone_is_unknown_and_another_begins(served: Served) -> None:
    eventually(lambda: listening(served) == 2)
    session = mcp_session(served)
    os.kill(int(session.rpartition("-")[2]), signal.SIGKILL)
    eventually(lambda: listening(served) == 1)
    for name in [session, session.rpartition("-")[0] + "-1", "../x-../../y"]:
        assert mcp(served, {"id": 2, "method": "ping"}, name).status_code == 404
    assert mcp(served, {"id": 2, "method": "ping"}, mcp_session(served)).status_code == 200
    eventually(lambda: listening(served) == 2, lambda: served.log)


async def test_one_that_is_told_to_stop_lets_its_turn_end_and_sends_its_pages_to_the_other(
    served: Served, peer: AnthropicServer
) -> None:
    held = reply("One two three", hold_after=4)
    peer.add(held)
    await asyncio.to_thread(eventually, lambda: listening(served) == 2)
    page = await page_at(served)
    await page.send(json.dumps({"type": "message", "text": "Count", "client_id": "c1"}))
    queued = await until(page, "turn_queued")
    await until(page, "text_delta")
    told = await asyncio.to_thread(_process_of, served)
    os.kill(told, signal.SIGTERM)
    await asyncio.to_thread(eventually, lambda: listening(served) == 1)
    other = await page_at(served)  # a new connection, to the one that goes on
    await other.send(json.dumps({"type": "open", "conversation": queued["conversation"]}))
    assert (await until(other, "snapshot"))["turn"]["state"] == "running"
    held.release.set()
    assert (await until(page, "response"))["text"] == "One two three"
    # Before anything else: a client that leaves the end of its socket unanswered is reset, with what it has not read.
    while await asyncio.wait_for(page.receive(), PATIENCE) is not None:
        pass
    assert page.closed == 1012
    assert (await until(other, "response"))["text"] == "One two three"
    other.close()


def _process_of(served: Served) -> int:
    """The process that runs a conversation: its lease names it."""
    rows = Database(served.folder).rows("SELECT runner FROM chat_conversation WHERE runner != ''")
    [(runner,)] = rows
    return int(str(runner).split("-")[-2])
