"""A real worker, killed in the middle of a build."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.builder.scripts import SCHEMA, code, register, write
from tests.peers.anthropic_server import AnthropicServer, reply
from tests.peers.site import Site
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.long

ASK: dict[str, Any] = {"name": "dice_roller", "description": "Rolls dice.", "input_schema": SCHEMA}
TRIED = code("import main; print(main.run({'count': 2, 'sides': 6}))")
MARK = f"marked_by_the_crash_test_{os.getpid()}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, peer: AnthropicServer) -> Iterator[Site]:
    """One web process for all tests here; each starts the workers it needs."""
    with tempfile.TemporaryDirectory(prefix="izzy-builds-") as folder:
        Path(folder).chmod(0o755)
        site = Site(
            tmp_path_factory.mktemp("site"),
            ANTHROPIC_BASE_URL=peer.url,
            ANTHROPIC_API_KEY="key-for-tests",
            IZZY_THROTTLE="off",
            IZZY_BUILDS_PER_USER="10",
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


@contextmanager
def working(site: Site) -> Iterator[None]:
    """A worker beside the test."""
    worker = worker_of(site)
    try:
        yield
    finally:
        worker.terminate()
        worker.wait(PATIENCE)


def lease_runs_out(site: Site) -> None:
    """The seconds pass for which the killed worker had reserved its builds."""
    dead = site.database.execute(
        "UPDATE builder_build SET lease_until = '2000-01-01' WHERE state = 'running'"
    )
    assert dead == 1


def sandboxes() -> set[int]:
    """The processes that run in a sandbox with this test's mark."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if MARK.encode() in (folder / "cmdline").read_bytes():
                found.add(int(folder.name))
        except OSError:
            continue
    return found


def test_a_build_whose_worker_is_killed_goes_on_in_the_next_one(
    site: Site, peer: AnthropicServer
) -> None:
    sleeping = code(
        f"import subprocess; subprocess.run(['python3', '-c', 'import time; time.sleep(3000)', '{MARK}'])"
    )
    peer.add(write(), sleeping)
    worker = worker_of(site)
    with site.client() as client:
        build = client.post("/api/v1/builds/", json=ASK).json()["build_id"]
        try:
            eventually(sandboxes)
        finally:
            os.kill(worker.pid, signal.SIGKILL)
            worker.wait()
        eventually(lambda: not sandboxes())
        assert state(client, build)["state"] == "running"

        peer.add(TRIED, register())
        lease_runs_out(site)
        with working(site):
            eventually(lambda: state(client, build)["state"] != "running")
            done = state(client, build)
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


def test_ten_builds_at_once_finish_and_chat_goes_on(site: Site, peer: AnthropicServer) -> None:
    """How quickly chat answers meanwhile is measured by `manage.py benchmark builds`."""
    peer.fallback = builder_or_chat
    with site.client() as client:
        with working(site):
            builds = [
                client.post("/api/v1/builds/", json=ASK | {"name": f"dice_{number}"}).json()["build_id"]
                for number in range(10)
            ]
            answers = []
            while any(state(client, build)["state"] in {"queued", "running"} for build in builds):
                answers.append(client.post("/api/v1/chat/", json={"message": "Hi"}).json()["text"])
        ended = [state(client, build) for build in builds]
    assert [build["state"] for build in ended] == ["done"] * 10, [build["error"] for build in ended]
    assert set(answers) == {"Hello."}


def builder_or_chat(request: dict[str, Any]) -> Any:
    """A builder that needs three rounds; a chat that answers at once."""
    if "register_capability" not in {each["name"] for each in request.get("tools", [])}:
        return reply("Hello.")
    steps = sum(message["role"] == "assistant" for message in request["messages"])
    return [write(), TRIED, register()][min(steps, 2)]
