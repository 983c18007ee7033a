"""Web servers of their own, with data of their own, for benchmarks over the wire."""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

PREPARE = """
from apps.accounts.models import Preferences, User
from apps.accounts.services import token_create
user = User.objects.create_user("benchmark", password=None)
Preferences.objects.create(user=user)
print("token", token_create(user=user, name="benchmark", scopes=["read", "write"])[1])
"""
START_SECONDS = 60


@dataclass(frozen=True, slots=True)
class WebProcess:
    """A running server; `token` is a bearer token of its only user ("" where it has none)."""

    port: int
    token: str
    log: Path

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


@contextmanager
def izzy_process(**environment: str) -> Iterator[WebProcess]:
    """Izzy under daphne over an empty data directory, throttling off; `environment` is added to its own."""
    with tempfile.TemporaryDirectory(prefix="izzy-benchmark-") as folder:
        own = {**_clean_environment(), "IZZY_DATA_DIR": folder, "IZZY_THROTTLE": "off", **environment}
        _manage(own, "migrate", "-v0")
        lines = _manage(own, "shell", "-v0", "-c", PREPARE).splitlines()
        token = next(line.split()[1] for line in lines if line.startswith("token "))
        with daphne("izzysite.asgi:application", own, Path(folder) / "server.log", token) as process:
            yield process


@contextmanager
def echo_process() -> Iterator[WebProcess]:
    """The bare echo under daphne."""
    with tempfile.TemporaryDirectory(prefix="izzy-benchmark-") as folder:
        log = Path(folder) / "server.log"
        with daphne("benchmarks._echo:application", _clean_environment(), log, "") as process:
            yield process


@contextmanager
def daphne(application: str, environment: dict[str, str], log: Path, token: str) -> Iterator[WebProcess]:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-m", "daphne", "-v0", "-b", "127.0.0.1", "-p", str(port), application]
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=settings.BASE_DIR, env=environment, stdout=output, stderr=output
        )
    try:
        _wait_for(port, process, log)
        yield WebProcess(port, token, log)
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"the server did not start:\n{log.read_text()}")


def _clean_environment() -> dict[str, str]:
    """This process's environment without what would point the server elsewhere."""
    names = ("IZZY_", "ANTHROPIC_", "REDIS_URL", "DATABASE_URL")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    return kept | {"IZZY_ENV_FILE": "", "DJANGO_SETTINGS_MODULE": "izzysite.settings"}


def _manage(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=True
    )
    return done.stdout
