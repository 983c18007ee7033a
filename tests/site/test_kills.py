"""Web processes, workers and the database's server are killed at random while people write: what was confirmed is there, what was
asked for once is there once, and everything fits after each.

    KILLS=50 make test ARGS="-s -o faulthandler_timeout=3600 tests/site/test_kills.py"

With DB=postgresql there, where the server is killed too.
"""

import os
import random
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.peers.anthropic_server import AnthropicServer
from tests.peers.postgres import Postgres, postgres
from tests.peers.prepared import prepared
from tests.peers.site import Site
from tests.site.test_hammer import FACTS, SHARED_FILE, Model
from tests.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("KILLS", "2"))
SEED = int(os.environ.get("KILLS_SEED", "7"))
PEOPLE = 3
BEFORE, AFTER = 2, 2
"""Rounds of all together before a kill, and rounds of each after it."""


class Mortals:
    """The web processes, the workers and the database's server; one that is killed is started again at once."""

    def __init__(self, site: Site, server: Postgres | None) -> None:
        self.site, self.server = site, server
        self.killed: Counter[str] = Counter()

    def kill(self, chance: random.Random) -> None:
        ways: list[Callable[[random.Random], str]] = [self._web_dies, self._worker_dies]
        if self.server is not None:
            ways.append(self._server_dies)
        # One of each kind first: so a run of few has them all.
        way = ways[self.killed.total()] if self.killed.total() < len(ways) else chance.choice(ways)
        self.killed[way(chance)] += 1

    def _web_dies(self, chance: random.Random) -> str:
        place = chance.randrange(len(self.site.processes))
        _end(self.site.processes[place])
        self.site.processes[place] = self.site.start(self.site.ports[place])
        return "web"

    def _worker_dies(self, chance: random.Random) -> str:
        place = chance.randrange(len(self.site.workers))
        _end(self.site.workers[place])
        self.site.workers[place] = self.site.start_worker()
        return "worker"

    def _server_dies(self, _: random.Random) -> str:
        assert self.server is not None
        self.server.kill()
        self.server.start()
        return "database"


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(PATIENCE)


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mortals]:
    """On PostgreSQL with a server of its own: others go on using theirs."""
    with ExitStack() as stack:
        server = None
        if "TEST_DATABASE_URL" in os.environ:
            server = stack.enter_context(postgres())
            monkeypatch.setenv("TEST_DATABASE_URL", server.url())
            prepared.cache_clear()
            stack.callback(prepared.cache_clear)
        model = stack.enter_context(AnthropicServer.in_thread(fallback=Model()))
        site = Site(
            tmp_path / "data",
            processes=2,
            workers=2,
            ANTHROPIC_BASE_URL=model.url,
            ANTHROPIC_API_KEY="key-for-tests",
            IZZY_THROTTLE="off",
            IZZY_CAPTURE_WAIT="0",
            IZZY_CAPTURE_TOKENS="1000000000",
            IZZY_ENV_FILE="",
            IZZY_SANDBOX_DIR=str(tmp_path / "sandbox"),  # without what other tests had installed
        )
        stack.callback(site.close)
        yield Mortals(site, server)


@dataclass
class Person:
    """Writes at whichever web process answers; keeps what was confirmed."""

    site: Site
    number: int
    rounds: int = 0
    notes: dict[str, str] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    refused: Counter[int] = field(default_factory=Counter)

    def run(self, killed: threading.Event) -> None:
        """Rounds until there was a kill, and some more."""
        more = AFTER
        while more:
            more -= killed.is_set()
            self.round(f"{self.number}.{self.rounds}")
            self.rounds += 1

    def round(self, name: str) -> None:
        north, south = (
            f"Birch {name} stands in the {where} of the garden." for where in ("north", "south")
        )
        made = self.sent("POST", "memories/", {"content": north})
        # Where the second answer is lost nothing is known of the note's text: it may have been changed.
        if made and self.sent("PATCH", f"memories/{made['id']}/", {"content": south}):
            self.notes[made["id"]] = south
        line = f"line {name};"
        fields = {"command": "insert", "path": SHARED_FILE, "insert_line": 0, "insert_text": f"{line}\n"}
        if self.sent("POST", "memory-files/", fields):
            self.lines.append(line)
        fact = list(FACTS)[self.rounds % len(FACTS)]
        said = [{"role": "user", "content": f"On walk {name} I thought of it. {fact}"}]
        if self.sent("POST", "ingest/", {"session": f"walk {name}", "messages": said}):
            self.sessions.append(f"walk {name}")
        message = {"message": f"Said {name}", "client_id": uuid4().hex, "stream": True}
        # Under the same name until there is an answer: it becomes one turn.
        eventually(lambda: self.sent("POST", "chat/", message), self.site.log.read_text)
        self.messages.append(f"Said {name}")

    def sent(self, method: str, path: str, body: dict[str, Any]) -> Any:
        """The answer; None where the connection was refused or broke, or the server said that it cannot now."""
        port = random.choice(self.site.ports)
        try:
            with self.site.client(port) as client:
                answer = client.request(method, f"/api/v1/{path}", json=body)
        except httpx.TransportError:
            return None
        if answer.status_code == 503:
            self.refused[503] += 1
            return None
        assert answer.status_code < 300, (path, answer.status_code, answer.text)
        streamed = answer.headers["content-type"].startswith("text/event-stream")
        return answer.text if streamed else answer.json()


def test_what_was_confirmed_survives_kills(served: Mortals) -> None:
    mortals, site, chance = served, served.site, random.Random(SEED)
    with site.client() as client:
        made = {"command": "create", "path": SHARED_FILE, "file_text": "the end\n"}
        assert client.post("/api/v1/memory-files/", json=made).is_success
    people = [Person(site, number) for number in range(PEOPLE)]
    for _ in range(KILLS):
        killed = threading.Event()
        wanted = sum(person.rounds for person in people) + BEFORE
        with ThreadPoolExecutor(PEOPLE) as pool:
            running = [pool.submit(person.run, killed) for person in people]
            try:
                eventually(partial(_far_enough, people, running, wanted), site.log.read_text)
                mortals.kill(chance)
            finally:
                killed.set()
            for each in running:
                each.result()
        for port in site.ports:
            site.wait_for(port)
        _rests(site)
        fits = site.manage("check_integrity")
        assert "Everything fits" in fits, fits
    print(f"\n{dict(mortals.killed)}, {sum(person.rounds for person in people)} rounds")
    _all_there(site, people)


def _far_enough(people: list[Person], running: list[Future[None]], wanted: int) -> bool:
    return sum(person.rounds for person in people) >= wanted or any(each.done() for each in running)


def _rests(site: Site) -> None:
    """Waits until every turn has ended and every passage has been read."""
    open_turns = "SELECT count(*) FROM chat_turn WHERE state IN ('queued', 'running')"
    unread = "SELECT count(*) FROM memory_capturewindow WHERE state <> 'done'"
    for query in (open_turns, unread):
        eventually(partial(_none, site, query), site.log.read_text)


def _none(site: Site, query: str) -> bool:
    return not _count(site, query)


def _all_there(site: Site, people: list[Person]) -> None:
    with site.client() as client:
        shown = client.post("/api/v1/memory-files/", json={"command": "view", "path": SHARED_FILE})
        said = shown.json()["result"]
        for person in people:
            for key, text in person.notes.items():
                assert client.get(f"/api/v1/memories/{key}/").json()["content"] == text
    once = "SELECT count(*) FROM chat_message WHERE role = 'user' AND text = ?"
    kept = (
        "SELECT count(*) FROM chat_message m JOIN chat_conversation c ON c.id = m.conversation_id"
        " WHERE c.session = ?"
    )
    for person in people:
        assert [said.count(line) for line in person.lines] == [1] * len(person.lines)
        for text in person.messages:
            assert _count(site, once, text) == 1, text
        for session in person.sessions:
            assert _count(site, kept, session) == 1, session
    learnt = "SELECT count(*) FROM memory_memory WHERE status = 'active' AND content = ?"
    for fact in FACTS:
        assert _count(site, learnt, fact) <= 1, fact


def _count(site: Site, query: str, *values: Any) -> int:
    return int(site.database.rows(query, *values)[0][0])
