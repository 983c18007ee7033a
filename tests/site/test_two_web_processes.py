"""With REDIS_URL two web processes are one Izzy: what happens in one is seen in the tabs of the other."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from django.conf import settings

from benchmarks._websocket import WebSocket
from tests.peers.redis_server import free_port

pytestmark = pytest.mark.timeout(400)


class Site:
    """One data directory, two web processes before it, and a token of its only user."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "izzysite.settings",
            "IZZY_DATA_DIR": str(folder),
            "REDIS_URL": redis_url,
            "DJANGO_SUPERUSER_PASSWORD": "correct horse battery",
        }
        self.manage("migrate", "-v0")
        self.manage("createsuperuser", "--noinput", "--username", "alice", "--email", "")
        self.token = self.manage("createtoken", "alice").strip()
        self.ports = [free_port(), free_port()]
        self.processes = [self._web(port) for port in self.ports]
        for port in self.ports:
            self._wait_for(port)

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        options = {"cwd": settings.BASE_DIR, "env": self.environment}
        return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout  # type: ignore[call-overload, no-any-return]

    def _web(self, port: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "manage.py", "web", "--port", str(port)]
        return subprocess.Popen(command, cwd=settings.BASE_DIR, env=self.environment)

    def _wait_for(self, port: int) -> None:
        deadline = time.monotonic() + 120
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{port}/healthz")
                return
            except httpx.TransportError:
                assert time.monotonic() < deadline
                time.sleep(0.2)

    def post(self, port: int, path: str, body: dict[str, object]) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.post(f"http://127.0.0.1:{port}{path}", json=body, headers=headers, timeout=120)

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(30)


@pytest.fixture
def site(tmp_path: Path, redis_url: str) -> Iterator[Site]:
    site = Site(tmp_path, redis_url)
    yield site
    site.close()


async def test_a_tab_at_one_process_sees_the_turn_that_the_other_runs(site: Site) -> None:
    first, second = site.ports
    created = await asyncio.to_thread(site.post, second, "/api/v1/conversations/", {"title": "Shared"})
    conversation = created.json()["id"]
    tab = await WebSocket.connect("127.0.0.1", first, "/ws/chat/", {"Authorization": f"Bearer {site.token}"})
    await tab.send(json.dumps({"type": "open", "conversation": conversation}))
    seen = [json.loads(await tab.receive() or "{}")["type"]]
    message = {"conversation": conversation, "message": "remember that I like plums", "stream": False}
    answer = await asyncio.to_thread(site.post, second, "/api/v1/chat/", message)
    assert answer.status_code == 200
    while "response" not in seen:
        frame = await asyncio.wait_for(tab.receive(), 60)
        seen.append(json.loads(frame or "{}")["type"])
    assert seen[0] == "snapshot"
    assert {"turn_queued", "turn_started", "text_delta", "tool_start", "tool_result", "response"} <= set(seen)
    tab.close()
