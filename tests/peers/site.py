"""A whole Izzy in processes of its own: one data directory, its only user alice, web processes and workers."""

import os
import subprocess
import sys
from pathlib import Path

import httpx
from django.conf import settings

from tests.peers.databases import Database
from tests.peers.ports import free_port
from tests.peers.prepared import prepared
from tests.waiting import PATIENCE, eventually


class Site:
    def __init__(
        self, folder: Path, *, processes: int = 1, workers: int = 0, **environment: str
    ) -> None:
        self.environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "izzysite.settings",
            "IZZY_DATA_DIR": str(folder),
            **prepared().copy(folder),
            **environment,
        }
        self.database = Database(folder)
        self.token = prepared().token
        self.log = folder / "log"
        self.ports = [free_port() for _ in range(processes)]
        self.processes = [self.start(port) for port in self.ports]
        self.workers = [self.start_worker() for _ in range(workers)]
        for port in self.ports:
            self.wait_for(port)

    @property
    def port(self) -> int:
        return self.ports[0]

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def client(self, port: int = 0) -> httpx.Client:
        return httpx.Client(
            base_url=f"http://127.0.0.1:{port or self.port}", headers=self.headers, timeout=PATIENCE
        )

    def close(self) -> None:
        for process in (*self.workers, *self.processes):
            process.terminate()
        for process in (*self.workers, *self.processes):
            process.wait(PATIENCE)

    def start(self, port: int) -> subprocess.Popen[bytes]:
        return self._started("web", "--port", str(port))

    def start_worker(self) -> subprocess.Popen[bytes]:
        return self._started("worker")

    def manage(self, *command: str) -> str:
        """Returns the output of a management command against the same data, on either stream."""
        done = subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=settings.BASE_DIR,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout

    def _started(self, *command: str) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "manage.py", *command],
                cwd=settings.BASE_DIR,
                env=self.environment,
                stdout=log,
                stderr=log,
            )

    def wait_for(self, port: int) -> None:
        def answers() -> bool:
            try:
                return bool(httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE))
            except httpx.TransportError:
                return False

        eventually(answers, self.log.read_text)
