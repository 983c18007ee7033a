"""Two hosts, each with a web process and a worker, and a third with PostgreSQL and Redis. One is cut off from the third: the other
goes on, also with what the first had begun; once it is healed nothing is lost and nothing is there twice.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.conf import settings

from tests.peers.anthropic_server import AnthropicServer, Reply, echo, reply
from tests.peers.databases import Database
from tests.peers.network import Host, Network, network
from tests.peers.ports import free_port
from tests.peers.postgres import postgres
from tests.peers.prepared import prepared
from tests.peers.redis_server import redis_on
from tests.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

PORT = 8000
PATH = "/memories/log.md"
AWAY = 60.0
"""Seconds in which a host that is cut off says so: a connection that is silent is given up after 25."""


class Model:
    """Repeats what is said; an answer to "Slowly" stops after its first words until it may go on."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()

    def __call__(self, request: dict[str, Any]) -> Reply:
        said = request["messages"][-1]["content"]
        if any(block.get("text") == "Slowly" for block in said):
            return reply("At a walk, step by step.", hold_after=4, release=self.may_go_on)
        return echo(request)


class Izzy:
    """Processes on one host, with a data directory of its own."""

    def __init__(self, host: Host, folder: Path, token: str, environment: dict[str, str]) -> None:
        self.host, self.token, self.log = host, token, folder / "log"
        self.environment = environment | {
            "IZZY_DATA_DIR": str(folder),
            "IZZY_SANDBOX_DIR": str(folder / "sandbox"),  # without what other tests had installed
            "IZZY_ALLOWED_HOSTS": host.address,
        }
        self.processes = [
            self._start("web", "--host", host.address, "--port", str(PORT)),
            self._start("worker"),
        ]

    def ask(self, method: str, path: str, *, timeout: float = PATIENCE, **body: Any) -> httpx.Response:
        address = f"http://{self.host.address}:{PORT}/api/v1/{path}"
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.request(method, address, headers=headers, timeout=timeout, **body)

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def sent(self, path: str, body: dict[str, Any]) -> Any:
        """Returns what was confirmed, None for what was not."""
        try:
            answer = self.ask("POST", path, json=body)
        except httpx.TransportError:
            return None
        assert answer.status_code < 500 or answer.status_code == 503, answer.text
        return answer.json() if answer.is_success else None

    def answers(self) -> bool:
        try:
            return self.ask("GET", "memories/?page_size=1").is_success
        except httpx.TransportError:
            return False

    def end(self) -> None:
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(PATIENCE)

    def _start(self, *command: str) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            return subprocess.Popen(
                self.host.command(sys.executable, "manage.py", *command),
                cwd=settings.BASE_DIR, env=self.environment, stdout=log, stderr=log,
            )  # fmt: skip


@contextmanager
def running(
    there: Network, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Izzy, Izzy, Host]]:
    """Two hosts with Izzy, and the one with what they share."""
    with ExitStack() as stack:
        shared, *own = there.hosts
        server = stack.enter_context(postgres(shared))
        stack.enter_context(redis_on(port := free_port(), tmp_path, shared))
        monkeypatch.setenv("TEST_DATABASE_URL", server.url())
        prepared.cache_clear()
        stack.callback(prepared.cache_clear)
        peer = stack.enter_context(
            AnthropicServer.in_thread(host=there.address, fallback=model, turns_only=True)
        )
        folders = [tmp_path / "one", tmp_path / "two"]
        environments = [prepared().copy(folder) for folder in folders]
        (tmp_path / "files").mkdir()
        common = settings_of_both(server.url(), environments[0]) | {
            "ANTHROPIC_BASE_URL": peer.url,
            "REDIS_URL": f"redis://{shared.address}:{port}/0",
            "IZZY_FILES_URL": f"file://{tmp_path / 'files'}",
        }
        both = []
        for host, folder in zip(own, folders, strict=True):
            both.append(izzy := Izzy(host, folder, prepared().token, common))
            stack.callback(izzy.end)
        stack.callback(own[1].heal, shared)
        for izzy in both:
            eventually(izzy.answers, izzy.log.read_text)
        yield both[0], both[1], shared


def settings_of_both(url: str, first: dict[str, str]) -> dict[str, str]:
    return os.environ | {
        "DJANGO_SETTINGS_MODULE": "izzysite.settings",
        "ANTHROPIC_API_KEY": "key-for-tests",
        "IZZY_THROTTLE": "off",
        "IZZY_DRAIN_SECONDS": "5",
        "IZZY_ENV_FILE": "",
        **first,
    }


def test_a_host_that_is_cut_off_is_done_without_and_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()

    def work() -> None:
        with running(there, model, tmp_path, monkeypatch) as (one, two, shared):
            _cut_off_and_healed(one, two, shared, model)

    with network(3) as there:
        there.run(work)


def _cut_off_and_healed(one: Izzy, two: Izzy, shared: Host, model: Model) -> None:
    for izzy in (one, two):
        assert izzy.sent("memories/", {"content": f"Written at {izzy.host.address}."})
    made = {"command": "create", "path": PATH, "file_text": "the end\n"}
    assert two.sent("memory-files/", made)
    place = two.sent("conversations/", {})["id"]
    telling = _begun(one, two, place)

    two.host.cut_off(shared)

    # The other goes on, at once; also with the conversation, as soon as it is clear that nobody works on it any more.
    assert one.sent("memories/", {"content": "Written meanwhile."})
    line = {"command": "insert", "path": PATH, "insert_line": 0, "insert_text": "line 1;\n"}
    assert one.sent("memory-files/", line)
    assert one.sent("chat/", {"message": "Elsewhere", "client_id": uuid4().hex})
    next_one = {"message": "And now?", "conversation": place, "client_id": uuid4().hex, "stream": False}
    assert one.sent("chat/", next_one)["text"] == "You said: And now?"
    # The one that is cut off says so instead of waiting for ever, and confirms nothing.
    lost = two.ask("POST", "memories/", json={"content": "Never confirmed."}, timeout=AWAY)
    assert lost.status_code == 503, lost.text
    model.may_go_on.set()

    two.host.heal(shared)

    eventually(two.answers, two.log.read_text)
    line["insert_text"] = "line 2;\n"
    eventually(lambda: two.sent("memory-files/", line), two.log.read_text)
    assert two.sent("chat/", {**next_one, "client_id": uuid4().hex, "message": "Still there?"})
    telling.join(PATIENCE)
    shown = one.sent("memory-files/", {"command": "view", "path": PATH})["result"]
    assert shown.count("line 1;") == shown.count("line 2;") == 1
    texts = sorted(each["content"] for each in two.get("memories/?page_size=50")["results"])
    assert [text for text in texts if text != "Never confirmed."] == sorted(
        [f"Written at {izzy.host.address}." for izzy in (one, two)] + ["Written meanwhile."]
    )
    assert texts.count("Never confirmed.") <= 1
    said = [
        each["text"]
        for each in one.get(f"conversations/{place}/messages/?page_size=50")["results"]
        if each["role"] == "user"
    ]
    assert sorted(said) == ["And now?", "Slowly", "Still there?"]
    assert _states(one, place) == ["interrupted", "done", "done"]
    # Cut off again in the middle of an answer it ends in order: no thread of a request keeps it.
    model.may_go_on.clear()
    _begun(one, two, two.sent("conversations/", {})["id"])
    two.host.cut_off(shared)
    two.end()
    model.may_go_on.set()
    command = [sys.executable, "manage.py", "check_integrity"]
    fits = subprocess.run(
        command, cwd=settings.BASE_DIR, env=one.environment, capture_output=True, text=True, check=False
    )
    assert "Everything fits" in fits.stdout, fits.stdout + fits.stderr


def _begun(one: Izzy, two: Izzy, place: str) -> threading.Thread:
    """An answer that the second host has begun; the first sees it."""
    slow = {"message": "Slowly", "conversation": place, "client_id": uuid4().hex, "stream": False}
    asking = threading.Thread(target=two.sent, args=("chat/", slow), daemon=True)
    asking.start()
    eventually(lambda: _states(one, place) == ["running"], two.log.read_text)
    return asking


def _states(izzy: Izzy, place: str) -> list[str]:
    """The states of the conversation's turns, in order."""
    database = Database(Path())
    database.name = izzy.environment["DATABASE_URL"].rpartition("/")[2]
    query = "SELECT state FROM chat_turn WHERE conversation_id = ? ORDER BY created_at"
    return [state for (state,) in database.rows(query, place)]
