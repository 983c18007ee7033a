"""`manage.py serve` as it is used: real processes, real signals."""

import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from django.conf import settings

from tests.peers.ports import free_port
from tests.waiting import PATIENCE, eventually

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("started_for_real")]


def alive(pid: int) -> bool:
    try:
        return b"Z" not in Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2][:3]
    except FileNotFoundError:
        return False


class Served:
    """One running `serve` with a data directory of its own."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        self.folder = folder
        self.log = folder / "log"
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "izzysite.settings",
            "IZZY_DATA_DIR": str(self.folder / "data"),
            "IZZY_PORT": str(self.port),
            "PYTHONUNBUFFERED": "1",
        }
        command = [sys.executable, "manage.py", "serve"]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command, cwd=settings.BASE_DIR, env=environment, stdout=log, stderr=log
            )
        eventually(lambda: "Izzy is running" in self.log.read_text() or process.poll() is not None)
        return process

    def again(self) -> None:
        self.log.write_text("")
        self.process = self._start()

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", timeout=PATIENCE)

    def children(self) -> dict[str, int]:
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                words = (folder / "cmdline").read_bytes().split(b"\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == self.process.pid and len(words) > 2 and alive(int(folder.name)):
                found[words[2].decode()] = int(folder.name)
        return found


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    if not Path("/proc/self/stat").exists():
        pytest.skip("reads the process table from /proc")
    server = Served(tmp_path)
    yield server
    server.process.terminate()
    server.process.wait(PATIENCE)


def test_it_comes_up_restarts_its_worker_and_stops_cleanly(served: Served) -> None:
    eventually(lambda: "/setup/#" in served.log.read_text(), served.log.read_text)
    link = re.search(r"http://127\.0\.0\.1:\d+/setup/#\S{20,}", served.log.read_text())
    assert link, "no set-up link was printed"
    assert served.get("/healthz").json() == {"status": "ok"}
    assert "Set-up code" in served.get("/setup/").text

    children = served.children()
    assert set(children) == {"web", "worker"}
    eventually(lambda: served.get("/readyz").json()["checks"]["worker"])
    data = served.folder / "data"
    for made in [data, *data.rglob("*")]:
        assert not made.stat().st_mode & 0o077, made
    os.kill(children["worker"], signal.SIGKILL)
    eventually(lambda: served.children().get("worker", children["worker"]) != children["worker"])
    assert served.children()["web"] == children["web"]

    running = served.children()
    served.process.terminate()
    assert served.process.wait(PATIENCE) == 0
    assert not [name for name, pid in running.items() if alive(pid)]


def test_children_die_with_a_killed_supervisor_and_the_next_start_is_as_before(served: Served) -> None:
    children = served.children()
    first_key = (served.folder / "data" / "secret_key").read_text()
    served.process.kill()
    served.process.wait()
    eventually(lambda: not any(alive(pid) for pid in children.values()))
    served.again()
    assert served.get("/healthz").status_code == 200
    assert (served.folder / "data" / "secret_key").read_text() == first_key


def test_a_taken_port_is_told_with_what_to_do(tmp_path: Path) -> None:
    with closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        environment = os.environ | {
            "DJANGO_SETTINGS_MODULE": "izzysite.settings",
            "IZZY_DATA_DIR": str(tmp_path),
        }
        command = [sys.executable, "manage.py", "serve", "--port", port]
        result = subprocess.run(
            command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False
        )
    assert result.returncode != 0
    assert f"Cannot listen on 127.0.0.1:{port}" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", ["web", "worker"])
def test_a_part_that_begins_before_the_database_is_made_says_so_in_a_line(
    tmp_path: Path, command: str
) -> None:
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "izzysite.settings",
        "IZZY_DATA_DIR": str(tmp_path),
        "IZZY_PORT": str(free_port()),
    }
    started = [sys.executable, "manage.py", command]
    result = subprocess.run(
        started,
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert result.returncode != 0
    assert "not set up yet. Run `manage.py migrate`" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert (tmp_path / "izzy.sqlite3").stat().st_mode & 0o777 == 0o600


def test_a_worker_alone_beats_without_a_queue_beside_its_rows_and_ends_in_order_at_sigterm(
    tmp_path: Path,
) -> None:
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "izzysite.settings",
        "IZZY_DATA_DIR": str(tmp_path),
    }

    def manage(command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "manage.py", command], cwd=settings.BASE_DIR, env=environment
        )

    def read(query: str) -> set[str]:
        with closing(sqlite3.connect(tmp_path / "izzy.sqlite3")) as database:
            return {name for (name,) in database.execute(query)}

    assert manage("migrate").wait(PATIENCE) == 0
    worker = manage("worker")
    try:
        beats = "SELECT key FROM core_instancestate WHERE key LIKE 'worker%'"
        eventually(lambda: read(beats))
        assert not {name for name in read("SELECT name FROM sqlite_master") if "task" in name}
        worker.terminate()
        assert worker.wait(PATIENCE) == 0
        assert not read(beats)
    finally:
        worker.kill()
