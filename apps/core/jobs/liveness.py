"""Whether a process still answers: asked by its supervisor, without the database.

A regular expression holds the interpreter's lock, so a process can stand still for ever while it uses a whole processor,
and nothing inside it can notice.
"""

import os
import select
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol

from apps.core.jobs.parent_watch import HEARTBEAT

QUESTION = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

LONGEST_FIRST = 16  # times the first pause
ASLEEP = 5.0  # seconds without a look


class Answer(Enum):
    YES = 1
    NOT_YET = 2
    NOBODY = 3  # nobody listens, as while a process loads its modules


class Probe(Protocol):
    """A question that can be asked again and again; neither method waits."""

    descriptors: list[int]  # what the process inherits to answer with
    environment: dict[str, str]

    def ask(self) -> None: ...

    def answer(self) -> Answer: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """In seconds, on the monotonic clock."""

    first: float = 60.0  # after a start nothing is asked; twice as long after each end, until it answers
    every: float = 5.0
    answer: float = 10.0  # for one answer
    failures: int = 6  # in a row, after which a busy process is a frozen one
    busy: float = 15.0  # of the processor's time, used since the first of them
    longest: float = 120.0  # without an answer, busy or not
    stacks: float = 2.0  # for writing its stacks, then
    end: float = 10.0  # for ending by itself


@dataclass
class Liveness:
    """The state of one process."""

    probe: Probe
    patience: Patience
    processor_seconds: Callable[[], float | None]
    silent_since: float | None = None
    _asked: float | None = None
    _next: float = 0.0
    _looked: float = 0.0
    _failures: int = 0
    _used_before: float | None = None
    _first: float = field(init=False)

    def __post_init__(self) -> None:
        self._first = self.patience.first

    def begin(self, now: float) -> None:
        """Holds nothing against the process, which has just been started."""
        self._forget(now, now + self._first)

    def look(self, now: float) -> str:
        """Asks, or looks whether there is an answer; why the process has to be ended, "" where it has not."""
        if now - self._looked > ASLEEP:  # the machine slept, or nobody looked: that is not its fault
            self._forget(now, max(self._next, now + self.patience.every))
        self._looked = now
        if (asked := self._asked) is None:
            if now >= self._next:
                self._ask(now)
            return ""
        match self.probe.answer():
            case Answer.YES:
                self._first = self.patience.first
                self._forget(now, asked + self.patience.every)
                return ""
            case Answer.NOBODY:
                self._failures = 0
            case Answer.NOT_YET if now - asked < self.patience.answer:
                return ""
            case Answer.NOT_YET:
                if not self._failures:
                    self._used_before = self.processor_seconds()
                self._failures += 1
        self._asked, self._next = None, asked + self.patience.every
        return self._verdict(now)

    def _ask(self, now: float) -> None:
        self._asked = now
        if self.silent_since is None:
            self.silent_since = now
        self.probe.ask()

    def _verdict(self, now: float) -> str:
        silent = 0.0 if self.silent_since is None else now - self.silent_since
        used = 0.0
        if self._failures >= self.patience.failures and self._used_before is not None:
            used = (self.processor_seconds() or 0.0) - self._used_before
        if used >= self.patience.busy or silent >= self.patience.longest:
            self._first = min(self._first * 2, self.patience.first * LONGEST_FIRST)
            return f"it did not answer for {silent:.0f} s and used {used:.0f} s of the processor meanwhile"
        return ""

    def _forget(self, now: float, following: float) -> None:
        self._looked, self._next = now, following
        self._asked = self.silent_since = self._used_before = None
        self._failures = 0


class WebProbe:
    """Asks for /healthz over a connection of its own; whatever the web server says is an answer."""

    def __init__(self, host: str, port: int) -> None:
        self.descriptors: list[int] = []
        self.environment: dict[str, str] = {}
        self._address = (host, port)
        self._socket: socket.socket | None = None
        self._is_asked = False

    def ask(self) -> None:
        if self._socket is not None:
            self._socket.close()
        family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        self._socket, self._is_asked = socket.socket(family, socket.SOCK_STREAM), False
        self._socket.setblocking(False)
        with suppress(OSError):  # the name cannot be looked up; sending fails then
            self._socket.connect_ex(self._address)

    def answer(self) -> Answer:
        if (connection := self._socket) is None:
            return Answer.NOBODY
        try:
            if not self._is_asked and select.select([], [connection], [], 0)[1]:
                connection.sendall(QUESTION)
                self._is_asked = True
            if not self._is_asked or not select.select([connection], [], [], 0)[0]:
                return Answer.NOT_YET
            return Answer.YES if connection.recv(100) else Answer.NOBODY
        except OSError:
            return Answer.NOBODY


class HeartbeatProbe:
    """Looks whether the process has written into a pipe since it was asked; see `parent_watch.beat_for_ever`."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        os.set_blocking(self._reading, False)
        os.set_blocking(writing, False)
        self.descriptors = [writing]
        self.environment = {HEARTBEAT: str(writing)}

    def ask(self) -> None:
        self.answer()

    def answer(self) -> Answer:
        with suppress(BlockingIOError):
            if os.read(self._reading, 65536):
                return Answer.YES
        return Answer.NOT_YET


def processor_seconds(process: int) -> float | None:
    """The processor time that a process has used, of all its threads; None where nobody says. There is /proc on Linux
    alone, `ps` elsewhere too."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        pass
    try:
        asked = ["ps", "-o", "time=", "-p", str(process)]
        shown = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=5).stdout  # noqa: S603
        return seconds_shown(shown)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def seconds_shown(text: str) -> float:
    """`0:12.34`, `01:02:03` or `2-01:00:00`, as `ps` writes times, in seconds. Raises ValueError for anything else."""
    days, _, rest = text.strip().rpartition("-")
    total = 0.0
    for part in rest.split(":"):
        total = total * 60 + float(part)
    return int(days or 0) * 86_400 + total
