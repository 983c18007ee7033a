"""A real worker process reads conversations, is killed in the middle, and the next one goes on: no loss, no duplicates."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat.server import ROOT, Server
from tests.memory.test_capture import REMEMBERED, RULES, forty_messages
from tests.peers.anthropic_server import AnthropicServer, Reply
from tests.peers.capture_model import CaptureModel
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.long

INGEST = """
import json
from apps.accounts.models import User
from apps.chat.conversations.ingest import messages_ingest
messages_ingest(user_id=User.objects.get().pk, session="walks", messages=json.load(open({file!r})))
"""


class Worker:
    """`manage.py worker` over a data directory."""

    def __init__(self, server: Server) -> None:
        self.server = server
        with (server.folder / "worker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "worker"],
                cwd=ROOT,
                env=server.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def end(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
        self.process.wait(PATIENCE)


class Stalling:
    """The model of the rules; the reply to request number `at` is held, and says that it was reached."""

    def __init__(self, at: int | None = None) -> None:
        self.model, self.at, self.count = CaptureModel(*RULES), at, 0
        self.reached = threading.Event()
        self.held: list[Reply] = []

    def __call__(self, request: dict[str, Any]) -> Reply:
        self.count += 1
        given = self.model(request)
        if self.count == self.at:
            given.hold_after = 1
            self.held.append(given)
            self.reached.set()
        return given


@pytest.fixture(scope="module")
def peer() -> Iterator[AnthropicServer]:
    with AnthropicServer.in_thread() as server:
        yield server


@pytest.fixture(scope="module")
def prepared(peer: AnthropicServer, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A data directory whose only user has had a conversation of forty messages ingested."""
    server = Server(tmp_path_factory.mktemp("prepared"), peer.url)
    file = server.folder / "talk.json"
    messages = [
        {"role": one.role, "content": one.text, "created_at": one.said_at.isoformat()}
        for one in forty_messages()
    ]
    file.write_text(json.dumps(messages))
    server.manage("shell", "-v0", "-c", INGEST.format(file=str(file)))
    return server


@pytest.fixture
def server(prepared: Server, tmp_path: Path) -> Server:
    return prepared.copy(tmp_path / "data")


def all_read(server: Server) -> bool:
    return server.rows("select count(*) from memory_capturewindow where state != 'done'") == [(0,)]


def active(server: Server) -> list[str]:
    return [
        text
        for (text,) in server.rows(
            "select content from memory_memory where status = 'active' order by id"
        )
    ]


def run_out(server: Server) -> None:
    """As if the time of a dead reader's lease had passed."""
    server.database.execute("update memory_capturelease set lease_until = '2000-01-01'")


def test_killed_in_the_middle_of_windows_nothing_is_lost_or_doubled(
    server: Server, peer: AnthropicServer
) -> None:
    """Once while the gate thinks, twice while the extractor does; what had been read is not read again."""
    for at in (1, 2, 4):
        stalling = peer.fallback = Stalling(at)
        worker = Worker(server)
        try:
            assert stalling.reached.wait(PATIENCE)
        finally:
            worker.end(signal.SIGKILL)
        stalling.held[0].release.set()
        assert not all_read(server)
        run_out(server)
    last = peer.fallback = Stalling()
    worker = Worker(server)
    try:
        eventually(lambda: all_read(server))
    finally:
        worker.end(signal.SIGTERM)
    assert active(server) == REMEMBERED
    assert server.rows("select count(*) from memory_memory") == [(5,)]
    assert server.rows("select importance from memory_memory where content like '%shellfish%'") == [(4,)]
    assert server.rows("select count(*) from memory_memoryedge where relation = 'supersedes'") == [(1,)]
    assert server.rows("select sum(added), sum(merged), sum(superseded) from memory_capturewindow") == [
        (4, 1, 1)
    ]
    assert len(last.model.gates) < server.rows("select count(*) from memory_capturewindow")[0][0]


def test_an_orderly_end_gives_the_windows_back_at_once(server: Server, peer: AnthropicServer) -> None:
    stalling = peer.fallback = Stalling(2)
    worker = Worker(server)
    try:
        assert stalling.reached.wait(PATIENCE)
        assert server.rows("select runner from memory_capturelease") != [("",)]
    finally:
        worker.end(signal.SIGTERM)
    stalling.held[0].release.set()
    assert server.rows("select runner from memory_capturelease") == [("",)]
