"""Web server and worker as processes of their own, with Redis between them: what the worker says is streamed, and what the
user answers reaches it."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from django.conf import settings

from tests.builder.scripts import SCHEMA, last_result, register, write
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.peers.site import Site
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.long

ASK: dict[str, Any] = {"name": "dice_roller", "description": "Rolls dice.", "input_schema": SCHEMA}


@pytest.fixture
def model() -> Iterator[AnthropicServer]:
    with AnthropicServer.in_thread(turns_only=True) as server:
        yield server


@pytest.fixture
def site(tmp_path: Path, model: AnthropicServer, redis_url: str) -> Iterator[Site]:
    """A web process and a worker."""
    with tempfile.TemporaryDirectory(prefix="izzy-builds-") as folder:
        Path(folder).chmod(0o755)
        site = Site(
            tmp_path,
            ANTHROPIC_BASE_URL=model.url,
            ANTHROPIC_API_KEY="key-for-tests",
            IZZY_THROTTLE="off",
            IZZY_SANDBOX_DIR=folder,
            IZZY_ENV_FILE="",
            REDIS_URL=redis_url,
        )
        with site.log.open("ab") as log:
            worker = subprocess.Popen(
                [sys.executable, "manage.py", "worker"],
                cwd=settings.BASE_DIR, env=site.environment, stdout=log, stderr=log,
            )  # fmt: skip
        yield site
        worker.terminate()
        worker.wait(PATIENCE)
        site.close()


class Stream:
    """The events of a build as one web process sends them."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines
        self.seen: list[dict[str, Any]] = []

    def until(self, type: str) -> dict[str, Any]:
        for line in self._lines:
            if line.startswith("data: "):
                self.seen.append(json.loads(line.removeprefix("data: ")))
                if self.seen[-1]["type"] == type:
                    return self.seen[-1]
        raise AssertionError([event["payload"] for event in self.seen])


def test_what_is_said_in_one_process_is_heard_in_the_others(
    site: Site, model: AnthropicServer, redis_url: str
) -> None:
    model.add(reply(tool("ask_user", {"question": "How many sides?"})), write(), register())
    store: Any = redis.Redis.from_url(redis_url)
    heard = store.pubsub()
    heard.psubscribe("*builds*")
    with site.client() as here, site.client() as there:
        build = here.post("/api/v1/builds/", json=ASK).json()["build_id"]
        with there.stream("GET", f"/api/v1/builds/{build}/events/") as response:
            stream = Stream(response.iter_lines())
            question = stream.until("question")
            answer = {"id": question["id"], "text": "a hundred"}
            assert here.post(f"/api/v1/builds/{build}/answer/", json=answer).status_code == 200
            done = stream.until("complete")
        missed = there.get(
            f"/api/v1/builds/{build}/events/", headers={"Last-Event-ID": str(question["number"])}
        )
    assert last_result(model.messages[1])["content"] == "The user answers: a hundred"
    assert [event["number"] for event in stream.seen] == list(range(1, done["number"] + 1))
    assert missed.text.count("event: ") == done["number"] - question["number"]
    notified(heard, build, times=done["number"] - 1)


def notified(heard: Any, build: str, *, times: int) -> None:
    """Until Redis has passed on that often that there is something new of the build."""
    notices = 0

    def often_enough() -> bool:
        nonlocal notices
        message = heard.get_message(timeout=1.0) or {"type": "", "data": b""}
        if message["type"] == "pmessage":
            notices += message["data"].count(build.encode())
        return notices >= times

    eventually(often_enough, lambda: notices)
