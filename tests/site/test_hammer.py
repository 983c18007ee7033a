"""Six clients of one user at once, over two web processes and two workers: no answer is an error of the server, nothing that was
confirmed is lost, and what was asked for once is there once.

    HAMMER_ROUNDS=100 make test ARGS="-s --timeout 3600 -o faulthandler_timeout=3600 tests/site/test_hammer.py"

With DB=postgresql there, with Redis.
"""

import asyncio
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from apps.memory.notes.revisions import MAX_REVISIONS
from benchmarks._network import WebSocket
from tests.builder.scripts import SCHEMA, register, write
from tests.peers.anthropic_server import AnthropicServer, Reply, echo
from tests.peers.capture_model import CaptureModel, Rule
from tests.peers.ports import free_port
from tests.peers.redis_server import redis_on
from tests.peers.site import Site
from tests.waiting import PATIENCE, eventually, until

pytestmark = pytest.mark.long

CLIENTS = 6
ROUNDS = int(os.environ.get("HAMMER_ROUNDS", "2"))
SHARED_FILE = "/memories/log.md"
FACTS = {
    "The user's sister Anna is allergic to shellfish.": "Anna",
    "The user works as a nurse at the Kepler hospital.": "nurse",
    "Project Falcon has to be done by 12 October.": "Falcon",
    "The user's car is a blue Skoda from 2011.": "Skoda",
    "The user plays the cello on Thursdays.": "cello",
    "The user's dog is called Bruno.": "Bruno",
}


class Model:
    """The model of everybody: echoes in the chat, builds what is asked for, reads by rules what is worth keeping."""

    def __init__(self) -> None:
        self.capture = CaptureModel(*(Rule(word, fact) for fact, word in FACTS.items()))

    def __call__(self, request: dict[str, Any]) -> Reply:
        tools = {each["name"] for each in request.get("tools", [])}
        if "register_capability" in tools:
            said = [block for message in request["messages"] for block in message["content"]]
            begun = any(block["type"] == "tool_result" for block in said)
            return register() if begun else write()
        if tools in ({"judge"}, {"save_items"}):
            return self.capture(request)
        return echo(request)


@dataclass
class Confirmed:
    """Things that the server has confirmed, to be counted in the end."""

    notes: dict[str, str] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    edits: int = 0
    links: int = 0
    lines: list[str] = field(default_factory=list)
    messages: dict[str, list[str]] = field(default_factory=dict)
    builds: list[str] = field(default_factory=list)
    sessions: dict[str, int] = field(default_factory=dict)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Site]:
    """Two web processes and two workers; on PostgreSQL with Redis between them."""
    with ExitStack() as stack:
        model = stack.enter_context(AnthropicServer.in_thread(fallback=Model()))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="izzy-hammer-"))
        Path(folder).chmod(0o755)
        redis = {}
        if "TEST_DATABASE_URL" in os.environ:
            stack.enter_context(redis_on(port := free_port(), tmp_path))
            redis = {"REDIS_URL": f"redis://127.0.0.1:{port}/0"}
        site = Site(
            tmp_path / "data",
            processes=2,
            workers=2,
            ANTHROPIC_BASE_URL=model.url,
            ANTHROPIC_API_KEY="key-for-tests",
            IZZY_THROTTLE="off",
            IZZY_BUILDS_PER_DAY="1000",
            IZZY_CAPTURE_WAIT="0",
            IZZY_CAPTURE_TOKENS="1000000000",
            IZZY_SANDBOX_DIR=folder,
            IZZY_ENV_FILE="",
            **redis,
        )
        stack.callback(site.close)
        yield site


class Client:
    """One of the six: every round it saves, changes, deletes, links, writes into the file of all, talks, has a tool built."""

    def __init__(self, site: Site, number: int, shared: str, place: str, done: Confirmed) -> None:
        self.site, self.number, self.shared, self.place, self.done = site, number, shared, place, done
        self.port = site.ports[number % len(site.ports)]
        self.http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}/api/v1/", headers=site.headers, timeout=PATIENCE
        )

    async def run(self) -> None:
        async with self.http:
            for turn in range(ROUNDS):
                name = f"{self.number}.{turn}"
                await self.note(name)
                await self.line(name)
                await self.chat(name)
                await self.talk(name)
                await self.ingest(name)
                if self.number == 0:
                    await self.build(turn)

    async def ask(self, method: str, path: str, **body: Any) -> Any:
        answer = await self.http.request(method, path, **body)
        assert answer.status_code < 300, (method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    async def note(self, name: str) -> None:
        texts = (f"Birch {name} stands in the north of the garden.", f"Elm {name} was cut down.")
        kept, gone = [
            (await self.ask("POST", "memories/", json={"content": text}))["id"] for text in texts
        ]
        await self.ask("PATCH", f"memories/{kept}/", json={"tags": [f"tree-{name}"]})
        await self.ask("POST", f"memories/{kept}/links/", json={"target": self.shared})
        self.done.links += 1
        await self.ask("DELETE", f"memories/{gone}/")
        self.done.deleted.add(gone)
        self.done.notes[kept] = texts[0]
        await self.ask(
            "PATCH", f"memories/{self.shared}/", json={"content": f"All know of {name} here."}
        )
        self.done.edits += 1

    async def line(self, name: str) -> None:
        text = f"line {name};"
        fields = {"command": "insert", "path": SHARED_FILE, "insert_line": 0, "insert_text": f"{text}\n"}
        await self.ask("POST", "memory-files/", json=fields)
        self.done.lines.append(text)

    async def chat(self, name: str) -> None:
        """A message in the conversation of all, by REST, sent twice under one name as after a lost answer."""
        message = {"message": f"Shared {name}", "conversation": self.place, "client_id": uuid4().hex}
        first, second = await asyncio.gather(*(self.ask("POST", "chat/", json=message) for _ in "ab"))
        assert first["turn"] == second["turn"]
        self.done.messages.setdefault(self.place, []).append(f"Shared {name}")

    async def talk(self, name: str) -> None:
        """A conversation of its own, over a websocket."""
        socket = await WebSocket.connect("127.0.0.1", self.port, "/ws/chat/", self.site.headers)
        try:
            message = {"type": "message", "text": f"Own {name}", "client_id": uuid4().hex}
            await socket.send(json.dumps(message))
            frame: dict[str, Any] = {}
            async with asyncio.timeout(PATIENCE):
                while frame.get("type") != "response":
                    frame = json.loads(await socket.receive() or '{"type": "closed"}')
                    assert frame["type"] not in ("error", "closed"), frame
        finally:
            socket.close()

    async def ingest(self, name: str) -> None:
        session, fact = f"walk {name}", list(FACTS)[self.number]
        said = [{"role": "user", "content": f"On walk {name} I thought of it. {fact}"}]
        await self.ask("POST", "ingest/", json={"session": session, "messages": said})
        self.done.sessions[session] = 1

    async def build(self, turn: int) -> None:
        asked = {"name": f"dice_{turn}", "description": "Rolls dice.", "input_schema": SCHEMA}
        build = (await self.ask("POST", "builds/", json=asked))["build_id"]
        self.done.builds.append(build)

        async def ended() -> bool:
            seen = await self.ask("GET", f"builds/{build}/")
            assert seen["state"] != "failed", seen["error"]
            return bool(seen["state"] == "done")

        await until(ended)


async def hammered(site: Site) -> tuple[str, str, Confirmed]:
    done = Confirmed()
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{site.port}/api/v1/", headers=site.headers, timeout=PATIENCE
    ) as http:
        shared = (await http.post("memories/", json={"content": "All know of it here."})).json()["id"]
        place = (await http.post("conversations/", json={})).json()["id"]
        made = {"command": "create", "path": SHARED_FILE, "file_text": "the end\n"}
        assert (await http.post("memory-files/", json=made)).is_success
    clients = [Client(site, number, shared, place, done) for number in range(CLIENTS)]
    async with asyncio.TaskGroup() as group:
        for client in clients:
            group.create_task(client.run())
    return shared, place, done


def test_six_clients_of_one_user_lose_nothing(server: Site) -> None:
    shared, place, done = asyncio.run(hammered(server))
    database = server.database

    def count(query: str, *values: Any) -> int:
        return int(database.rows(query, *values)[0][0])

    eventually(lambda: not count("SELECT count(*) FROM memory_capturewindow WHERE state <> 'done'"))
    with server.client() as client:

        def get(path: str) -> Any:
            answer = client.get(f"/api/v1/{path}")
            assert answer.status_code == 200, answer.text
            return answer.json()

        for key, text in done.notes.items():
            assert get(f"memories/{key}/")["content"] == text
        assert (
            get(f"memories/{shared}/history/?page_size=1")["count"] == min(done.edits, MAX_REVISIONS) + 1
        )
        assert get(f"memories/{shared}/links/?page_size=1")["count"] == done.links
        said = client.post(
            "/api/v1/memory-files/", json={"command": "view", "path": SHARED_FILE}
        ).json()["result"]
        told: list[Any] = []
        following: int | None = 1
        while following:
            page = get(f"conversations/{place}/messages/?page_size=200&page={following}")
            told += page["results"]
            following = following + 1 if page["next"] else None
    assert [said.count(line) for line in done.lines] == [1] * len(done.lines)
    assert sorted(each["text"] for each in told if each["role"] == "user") == sorted(
        done.messages[place]
    )
    assert len([each for each in told if each["role"] == "assistant"]) == len(done.messages[place])
    assert count("SELECT count(*) FROM chat_turn WHERE state <> 'done'") == 0
    for fact in FACTS:
        assert (
            count("SELECT count(*) FROM memory_memory WHERE content = ? AND status = 'active'", fact)
            == 1
        )
    for session, messages in done.sessions.items():
        query = "SELECT count(*) FROM chat_message m JOIN chat_conversation c ON c.id = m.conversation_id WHERE c.session = ?"
        assert count(query, session) == messages
    assert count("SELECT count(*) FROM capabilities_capability") == len(done.builds) == ROUNDS
    assert "Traceback" not in server.log.read_text()
    fits = server.manage("check_integrity")
    assert "Everything fits" in fits, fits
