"""A real worker, killed in the middle of a build."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.builder.scripts import SCHEMA, code, register, write
from tests.peers.anthropic_server import AnthropicServer, reply
from tests.peers.site import Site

ASK: dict[str, Any] = {"name": "dice_roller", "description": "Rolls dice.", "input_schema": SCHEMA}
PATIENCE = 90.0


@pytest.fixture
def model() -> Iterator[AnthropicServer]:
    with AnthropicServer.in_thread() as server:
        yield server


@pytest.fixture
def site(tmp_path: Path, model: AnthropicServer) -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="izzy-builds-") as folder:
        Path(folder).chmod(0o755)
        site = Site(
            tmp_path,
            ANTHROPIC_BASE_URL=model.url,
            ANTHROPIC_API_KEY="key-for-tests",
            IZZY_THROTTLE="off",
            IZZY_SANDBOX_DIR=folder,
            IZZY_ENV_FILE="",
        )
        yield site
        site.close()


def worker_of(site: Site) -> subprocess.Popen[bytes]:
    command = [sys.executable, "manage.py", "worker"]
    with site.log.open("ab") as log:
        return subprocess.Popen(
            command, env=site.environment, stdout=log, stderr=log, cwd=Path(__file__).parents[2]
        )


def until(holds: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.1)


def sandboxes() -> set[int]:
    """The processes that run in a sandbox with this test's mark."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"marked_by_the_crash_test" in (folder / "cmdline").read_bytes():
                found.add(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.timeout(300)
def test_a_build_whose_worker_is_killed_goes_on_in_the_next_one(site: Site, model: AnthropicServer) -> None:
    sleeping = code(
        "import subprocess; subprocess.run(['python3', '-c', 'import time; time.sleep(300)', 'marked_by_the_crash_test'])"
    )
    model.add(write(), sleeping)
    worker = worker_of(site)
    with site.client() as client:
        build = client.post("/api/v1/builds/", json=ASK).json()["build_id"]
        until(sandboxes)
        os.kill(worker.pid, signal.SIGKILL)
        worker.wait()
        until(lambda: not sandboxes())
        assert state(client, build)["state"] == "running"

        tried = code("import main; print(main.run({'count': 2, 'sides': 6}))")
        model.add(tried, register())
        second = worker_of(site)
        try:
            until(lambda: state(client, build)["state"] != "running")
            done = state(client, build)
        finally:
            second.terminate()
            second.wait(30)
    assert (done["state"], done["version"]) == ("done", 1), (done["error"], site.log.read_text()[-3000:])
    calls = [call for each in done["rounds"] for call in each["tool_calls"]]
    assert [(call["name"], call["is_error"]) for call in calls] == [
        ("write_file", False),
        ("run_code", True),
        ("run_code", False),
        ("register_capability", False),
    ]
    assert "was not run again" in calls[1]["result"]
    assert calls[2]["result"].startswith("[The sandbox was started anew")
    assert sandboxes() == set()


def state(client: httpx.Client, build: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/api/v1/builds/{build}/").json()
    return found


@pytest.mark.timeout(600)
def test_ten_builds_at_once_finish_and_chat_goes_on(site: Site, model: AnthropicServer) -> None:
    """The figures are for people; what is asserted is that all finish and that chat answers meanwhile."""

    def answer(request: dict[str, Any]) -> Any:
        tools = {each["name"] for each in request.get("tools", [])}
        if "register_capability" not in tools:
            return reply("Hello.")
        steps = sum(message["role"] == "assistant" for message in request["messages"])
        return [write(), code("import main; print(main.run({'count': 2, 'sides': 6}))"), register()][
            min(steps, 2)
        ]

    model.fallback = answer
    site.environment["IZZY_BUILDS_PER_USER"] = "10"
    with site.client() as client:
        idle = [first_token(client) for _ in range(30)][10:]
        worker = worker_of(site)
        try:
            builds = [
                client.post("/api/v1/builds/", json=ASK | {"name": f"dice_{number}"}).json()["build_id"]
                for number in range(10)
            ]
            busy: list[float] = []
            began = time.monotonic()
            while any(state(client, build)["state"] in {"queued", "running"} for build in builds):
                assert time.monotonic() < began + 300
                busy.append(first_token(client))
            took = time.monotonic() - began
        finally:
            worker.terminate()
            worker.wait(30)
        states = [state(client, build)["state"] for build in builds]
    print(
        f"\nten builds: {took:.1f} s; first token, p95: idle {p95(idle):.3f} s, meanwhile {p95(busy):.3f} s"
    )
    assert states == ["done"] * 10


def p95(times: list[float]) -> float:
    return sorted(times)[int(len(times) * 0.95)]


def first_token(client: httpx.Client) -> float:
    """Seconds from sending a message to the first text of the answer."""
    began = time.monotonic()
    with client.stream("POST", "/api/v1/chat/", json={"message": "Hi", "stream": True}) as response:
        for line in response.iter_lines():
            if line == "event: text_delta":
                return time.monotonic() - began
    raise AssertionError("no text came")
