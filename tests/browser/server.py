"""The real thing: `manage.py serve` with a data directory of its own, started, killed and started again."""

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import StorageState

from tests.peers.ports import free_port
from tests.peers.prepared import LET_IN, prepared
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).resolve().parents[2]
ENGINES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "DATABASE_URL",
    "REDIS_URL",
    "OLLAMA_URL",
    "E2B_API_KEY",
)


MORE = f"""{LET_IN}
import json
from apps.accounts.models import Preferences, User
made = [User.objects.create_user("user" + str(number)) for number in range({{first}}, {{first}} + 50)]
Preferences.objects.bulk_create(Preferences(user=user) for user in made)
print("MADE", json.dumps([let_in(user) for user in made]))
"""
NUMBERS = itertools.count(1, 50)
OF_SOMEONE = """
from importlib import import_module
from django.conf import settings
from apps.accounts.models import User
session = import_module(settings.SESSION_ENGINE).SessionStore({session!r})
user = User.objects.get(pk=session["_auth_user_id"])
"""


@dataclass
class Server:
    """`environment` is added to a clean one: no keys, no engines, no throttling."""

    data_dir: Path
    environment: dict[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    output: list[str] = field(default_factory=list)
    _process: subprocess.Popen[str] | None = None
    _people: list[str] = field(default_factory=list)

    @classmethod
    def prepared(cls, data_dir: Path, environment: dict[str, str] | None = None) -> "Server":
        """One whose first account, alice, has been made."""
        return cls(data_dir, prepared().copy(data_dir) | (environment or {}))

    @property
    def owner(self) -> StorageState:
        """The browser of alice, of a server made by `prepared`."""
        return self._signed_in(prepared().session)

    def someone(self) -> StorageState:
        """The browser of a new user, with no memories and no conversations. They are made by the dozen, as starting a
        command takes longer than making users."""
        if not self._people:
            said = self.manage("shell", "-v", "0", "-c", MORE.format(first=next(NUMBERS)))
            made = next(line for line in said.splitlines() if line.startswith("MADE "))
            self._people = json.loads(made.removeprefix("MADE "))
        return self._signed_in(self._people.pop())

    def _signed_in(self, session: str) -> StorageState:
        return {"cookies": [{"name": "izzy_session", "value": session, "url": self.url}], "origins": []}  # type: ignore[typeddict-unknown-key]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def setup_link(self) -> str:
        """The newest one-time link on the console; it is printed a moment after the address."""
        links = eventually(
            lambda: re.findall(r"http\S+/setup/#\S+\n", "".join(self.output)),
            lambda: "".join(self.output),
        )
        return str(links[-1]).strip()

    def start(self) -> None:
        command = [sys.executable, "manage.py", "serve", "--host", "127.0.0.1", "--port", str(self.port)]
        self.output.clear()
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=self._environment(),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        running = threading.Event()
        threading.Thread(target=self._read, args=(self._process, running), daemon=True).start()
        if not running.wait(PATIENCE):
            raise AssertionError("the server did not start:\n" + "".join(self.output))

    def kill(self) -> None:
        """SIGKILL, as a power cut would: nothing gets a chance to tidy up."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._wait_until_silent()

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(timeout=PATIENCE)

    def manage(self, *arguments: str) -> str:
        """Runs one management command against the same data."""
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=self._environment(), text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shell(self, state: StorageState, code: str) -> Any:
        """Runs code with the `user` whose browser this is; what it prints as JSON after `MADE `, if anything."""
        head = OF_SOMEONE.format(session=state["cookies"][0]["value"])
        said = self.manage("shell", "-v", "0", "-c", head + code)
        found = re.search(r"^MADE (.*)$", said, flags=re.MULTILINE)
        return json.loads(found[1]) if found else None

    def _environment(self) -> dict[str, str]:
        clean = {
            name: value
            for name, value in os.environ.items()
            if name not in ENGINES and not name.startswith(("IZZY_", "DJANGO_"))
        }
        own = {
            "IZZY_DATA_DIR": str(self.data_dir),
            "IZZY_THROTTLE": "off",
            "IZZY_EMBEDDER": "static",  # as in tests.settings
            "PYTHONUNBUFFERED": "1",
        }
        return clean | own | self.environment

    def _read(self, process: subprocess.Popen[str], running: threading.Event) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.output.append(line)
            if "Izzy is running at" in line:
                running.set()

    def _wait_until_silent(self) -> None:
        """The children die with their parent; the port is free when they have."""

        def is_silent() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", self.port)) != 0

        eventually(is_silent, lambda: "the killed server still answers")
