"""A backup made while people write is sound, and holds what they were told is saved before it began."""

import io
import itertools
import json
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.conf import settings

from tests.capabilities.making import GREETING, NAME_SCHEMA
from tests.peers.databases import Database
from tests.peers.site import Site
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.long
PEOPLE = 3
ROUNDS = 2
"""Rounds of each that are behind when a backup begins."""


class Load:
    """Clients that save, change, delete and bring in, until told to stop."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.over = threading.Event()
        self.notes: list[
            tuple[float, str, str]
        ] = []  # (when it was confirmed, id, text), never touched again
        self.tools: list[tuple[float, str, str]] = []  # the same with name and code
        self.gone: list[tuple[float, str]] = []  # (when its deletion was confirmed, id)
        self.rounds = [0] * PEOPLE

    def client(self, place: int) -> None:
        with self.site.client(self.site.ports[place % len(self.site.ports)]) as client:
            for number in itertools.count():
                if self.over.is_set():
                    return
                self._round(client, place, number)
                self.rounds[place] = number + 1

    def _round(self, client: httpx.Client, place: int, number: int) -> None:
        kept, gone = (
            _sent(client, "post", "memories/", json={"content": f"Walnut {place} {number} {word}"})["id"]
            for word in ("stays", "goes")
        )
        text = f"Walnut {place} {number} stays where it is."
        _sent(client, "patch", f"memories/{kept}/", json={"content": text})
        self.notes.append((time.monotonic(), kept, text))
        _sent(client, "delete", f"memories/{gone}/")
        self.gone.append((time.monotonic(), gone))
        for word in ("goes", "stays"):
            code = f"{GREETING}\n# {place} {number} {random.random()}\n"
            tool = {
                "name": f"{word}_{place}_{number}",
                "description": "Greets.",
                "input_schema": NAME_SCHEMA,
                "files": {"main.py": code},
            }
            _sent(client, "post", "capabilities/", json=tool)
            if word == "goes" or number > 5:
                _sent(client, "delete", f"capabilities/{tool['name']}/")
            else:
                self.tools.append((time.monotonic(), f"{word}_{place}_{number}", code))
        lines = io.BytesIO(f"# Walnut\n\nThe tree {place} {number} is old.\n".encode())
        _sent(client, "post", "import/", files={"file": (f"tree{number}.md", lines)}, expect={202, 409})


def _sent(
    client: httpx.Client, method: str, path: str, *, expect: set[int] | None = None, **body: Any
) -> Any:
    answer = client.request(method, f"/api/v1/{path}", **body)
    assert answer.status_code in (expect or {200, 201, 204}), (path, answer.status_code, answer.text)
    return answer.json() if answer.content else None


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    own = str(tmp_path / "sandbox")  # without what other tests had installed
    site = Site(tmp_path / "data", processes=2, workers=1, IZZY_SANDBOX_DIR=own)
    yield site
    site.close()


def manage(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


LOOK = """
import json
from apps.capabilities.catalog.files import files_verified
from apps.capabilities.models import Capability
from apps.memory.models import Memory
notes = Memory.everything.filter(content__startswith="Walnut", status="active").values_list("pk", "content")
tools = Capability.objects.unscoped().select_related("current")
code = {tool.name: files_verified(tool.current, tool.name)["main.py"] for tool in tools}
print("FOUND", json.dumps([{str(key): text for key, text in notes}, code]))
"""


def test_it_restores_to_what_was_confirmed_before_it_began(site: Site, tmp_path: Path) -> None:
    load = Load(site)
    with ThreadPoolExecutor(PEOPLE) as pool:
        clients: list[Future[None]] = [pool.submit(load.client, place) for place in range(PEOPLE)]
        try:
            eventually(
                lambda: min(load.rounds) >= ROUNDS or any(client.done() for client in clients),
                site.log.read_text,
            )
            began = time.monotonic()
            said = manage(site.environment, "backup", str(tmp_path / "copy"))
        finally:
            load.over.set()
        for client in clients:
            client.result()
    assert "Warning" not in said

    data = tmp_path / "restored"
    environment = site.environment | {"IZZY_DATA_DIR": str(data)} | Database(data).environment
    assert f"Restored to {data}" in manage(environment, "restore", str(tmp_path / "copy"))
    assert "Everything fits" in manage(environment, "check_integrity")
    said = manage(environment, "shell", "-v", "0", "-c", LOOK)
    line = next(line for line in said.splitlines() if line.startswith("FOUND "))
    notes, tools = json.loads(line.removeprefix("FOUND "))
    assert len(notes) >= PEOPLE * ROUNDS
    for when, key, text in load.notes:
        assert when > began or notes[key] == text
    for when, name, code in load.tools:
        assert when > began or tools[name] == code
    assert not [key for when, key in load.gone if when <= began and key in notes]
