"""A whole Izzy in processes of its own: one data directory, its only user alice, and web processes before it."""

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
    def __init__(self, folder: Path, *, processes: int = 1, **environment: str) -> None:
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
        self.processes = [self._web(port) for port in self.ports]
        for port in self.ports:
            self._wait_for(port)

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
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(PATIENCE)

    def _web(self, port: int) -> subprocess.Popen[bytes]:
        command = [sys.executable, "manage.py", "web", "--port", str(port)]
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command, cwd=settings.BASE_DIR, env=self.environment, stdout=log, stderr=log
            )

    def _wait_for(self, port: int) -> None:
        def answers() -> bool:
            try:
                return bool(httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=PATIENCE))
            except httpx.TransportError:
                return False

        eventually(answers, self.log.read_text)
