"""A real server process with a database of its own, to be killed at will."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.peers.databases import Database
from tests.peers.ports import free_port
from tests.peers.prepared import Prepared, prepared
from tests.waiting import PATIENCE, eventually

ROOT = Path(__file__).parent.parent.parent


class Server:
    """`uvicorn` on a free port, in a process group of its own."""

    def __init__(self, folder: Path, model_url: str, begun: Prepared | None = None) -> None:
        begun = begun or prepared()
        self.folder = folder
        self.environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("IZZY_", "ANTHROPIC_"))
            },
            "IZZY_ENV_FILE": "",
            "IZZY_DATA_DIR": str(folder),
            "IZZY_THROTTLE": "off",
            "IZZY_EMBEDDER": "static",
            "ANTHROPIC_BASE_URL": model_url,
            "DJANGO_SETTINGS_MODULE": "izzysite.settings",
        }
        self.processes: list[subprocess.Popen[bytes]] = []
        self.port = 0
        self.ports: list[int] = []
        self.token = begun.token
        self.database = Database(folder)
        if folder.joinpath("secret_key").exists():  # a copy of another server's
            self.environment |= self.database.environment
        else:
            self.environment |= begun.copy(folder)

    def copy(self, folder: Path) -> "Server":
        """Another server over a copy of this one's data."""
        shutil.copytree(self.folder, folder)
        self.database.copy(folder)
        return Server(folder, self.environment["ANTHROPIC_BASE_URL"])

    def start(self) -> "Server":
        """One more web process over the same data; the newest one is spoken to."""
        self.port = free_port()
        self.ports.append(self.port)
        command = [
            sys.executable,
            "-m",
            "uvicorn",
            "--log-level=warning",
            "--timeout-graceful-shutdown=1",
            f"--port={self.port}",
            "izzysite.asgi:application",
        ]
        with (self.folder / "server.log").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, env=self.environment, stdout=log, stderr=log, start_new_session=True
            )
        self.processes.append(process)
        eventually(self._answers, (self.folder / "server.log").read_text)
        return self

    def _answers(self) -> bool:
        try:
            return (
                httpx.get(f"http://127.0.0.1:{self.port}/healthz", timeout=PATIENCE).status_code == 200
            )
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """SIGKILL: nothing gets a chance to tidy up."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, as an operator stops it."""
        self._end(signal.SIGTERM)

    def _end(self, number: int) -> None:
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)
        for process in self.processes:
            process.wait(PATIENCE)
        self.processes.clear()
        self.ports.clear()

    def expire_leases(self) -> None:
        """As if the time of a lease had passed since the kill."""
        self.database.execute(
            "update chat_conversation set lease_until = '2000-01-01' where runner != ''"
        )

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.database.rows(query)

    @property
    def http(self) -> httpx.Client:
        return httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}",
            headers={"authorization": f"Bearer {self.token}"},
            timeout=PATIENCE,
        )

    def get(self, path: str) -> Any:
        with self.http as client:
            return client.get(f"/api/v1/{path}").raise_for_status().json()

    @contextmanager
    def chat(self, message: str, **values: Any) -> Iterator[Iterator[dict[str, Any]]]:
        """The events of a streamed turn, as they come."""
        body = {"message": message, "stream": True, **values}
        with self.http as client, client.stream("POST", "/api/v1/chat/", json=body) as response:
            assert response.status_code == 200, response.read()
            yield events(response)

    def manage(self, *arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def events(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """The data of server-sent events."""
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))
