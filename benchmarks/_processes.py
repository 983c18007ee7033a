"""A whole Izzy as `manage.py serve` runs it, and what its processes use, read from /proc."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from django.conf import settings
from django.core.management import CommandError

from benchmarks._network import START_SECONDS, environment_of, free_port, log_of

PREPARE = """
import sys
from apps.accounts.models import Preferences, User
from apps.accounts.services import token_create
from apps.memory.notes.creation import memory_create
for number in range({users}):
    user = User.objects.create_user(f"load{{number}}", password=None)
    Preferences.objects.create(user=user)
    for note in range({notes}):
        text = f"The plan number {{note}} of the garden says that bed {{note * 7 % 31}} gets tomatoes and beans."
        memory_create(user_id=user.pk, content=text)
    print("token", token_create(user=user, name="load", scopes=["read", "write"])[1])
"""
TICKS = os.sysconf("SC_CLK_TCK")


class Usage(NamedTuple):
    """The resources that processes have used so far: seconds of the processor, and by process the memory that is its own share (PSS, MiB)."""

    seconds: float
    pss: list[float]


class Served(NamedTuple):
    """A running Izzy; `tokens` are bearer tokens, one of each user."""

    port: int
    folder: Path
    tokens: list[str]
    supervisor: int

    @property
    def log(self) -> str:
        return log_of(self.folder).read_text()

    def processes(self, command: str) -> list[int]:
        """The ids of the children that run this command of manage.py."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                arguments = (place / "cmdline").read_text().split("\0")
            except (OSError, ValueError, IndexError):  # it has just ended
                continue
            if parent == self.supervisor and command in arguments:
                found.append(int(place.name))
        return sorted(found)

    def usage(self, command: str) -> Usage:
        """Returns what the children that run this command have used until now."""
        processes = self.processes(command)
        return Usage(sum(map(processor_seconds, processes)), [pss_of(each) for each in processes])


def processor_seconds(process: int) -> float:
    """The processor time that a process has used, of all its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def pss_of(process: int) -> float:
    """MiB: its own pages, and of those that it shares with others its share."""
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


@contextmanager
def served(*, users: int, notes: int, **environment: str) -> Iterator[Served]:
    """`manage.py serve` over an empty database with these users, each with that many notes; ended with the block."""
    with tempfile.TemporaryDirectory(prefix="izzy-benchmark-", ignore_cleanup_errors=True) as name:
        folder, port = Path(name), free_port()
        own = environment_of(folder, {"IZZY_PORT": str(port), **environment})
        output = ""
        for arguments in (
            ("migrate", "-v0"),
            ("shell", "-v0", "-c", PREPARE.format(users=users, notes=notes)),
        ):
            command = [sys.executable, "manage.py", *arguments]
            done = subprocess.run(
                command, cwd=settings.BASE_DIR, env=own, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise CommandError(done.stderr)
            output = done.stdout
        tokens = [line.split()[1] for line in output.splitlines() if line.startswith("token ")]
        with log_of(folder).open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "manage.py", "serve"],
                cwd=settings.BASE_DIR,
                env=own,
                stdout=log,
                stderr=log,
            )
        try:
            izzy = Served(port, folder, tokens, process.pid)
            until = time.monotonic() + START_SECONDS
            while "Izzy is running" not in izzy.log:
                if time.monotonic() > until or process.poll() is not None:
                    raise CommandError(f"Izzy did not start:\n{izzy.log}")
                time.sleep(0.1)
            yield izzy
        finally:
            process.terminate()
            process.wait(30)
