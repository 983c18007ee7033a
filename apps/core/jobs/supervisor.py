"""Keeps the processes of one Izzy running: starts them, restarts what dies or no longer answers, and stops them together.

A regular expression holds the interpreter's lock, so a process can stand still for ever while it uses a whole processor,
and nothing inside it can notice: its supervisor asks whether it still answers, without the database.
"""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import Protocol

from django.conf import settings

from apps.core.jobs.parent_watch import GATE, HEARTBEAT, PARENT, WRITE_STACKS

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
                self._asked = now
                if self.silent_since is None:
                    self.silent_since = now
                self.probe.ask()
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

    def _verdict(self, now: float) -> str:
        silent = 0.0 if self.silent_since is None else now - self.silent_since
        used = 0.0
        if self._failures >= self.patience.failures and self._used_before is not None:
            used = (self.processor_seconds() or 0.0) - self._used_before
        if used >= self.patience.busy or silent >= self.patience.longest:
            self._first = min(self._first * 2, self.patience.first * LONGEST_FIRST)
            return (
                f"it did not answer for {silent:.0f} s and used {used:.0f} s of the processor meanwhile"
            )
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


CHECK_SECONDS = 0.25
STOP_SECONDS = 10.0
"""So long a child may take to end, beside what a web process has to let turns come to their end."""
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
STEADY_SECONDS = 60.0


@dataclass
class Child:
    """One process. After each death the pause before the next start doubles, until it has run, or answered, for a minute."""

    name: str
    command: Sequence[str]
    liveness: Liveness = field(init=False)
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = FIRST_PAUSE
    due: float = field(default=0.0)
    answered_until: float | None = None  # where it was ended since it no longer did

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Supervisor:
    """Runs the commands (arguments for manage.py) by name until SIGTERM, SIGINT, SIGHUP or `stop`.

    `note` is called with the name of a process that had to be ended, and why.
    """

    def __init__(
        self,
        commands: Mapping[str, Sequence[str]],
        manage: Path,
        say: Callable[[str], None],
        note: Callable[[str, str], None] = lambda name, reason: None,
        patience: Patience = Patience(),
    ) -> None:
        self._commands = {
            name: [sys.executable, str(manage), *arguments] for name, arguments in commands.items()
        }
        self.children: list[Child] = []
        self.say = say
        self._note, self._patience = note, patience
        self._stopping = False
        self._parent, self._parent_end = os.pipe()
        self._gate, self._gate_end = os.pipe()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def start(self, name: str, probe: Probe) -> None:
        child = Child(name, self._commands[name])
        child.liveness = Liveness(
            probe,
            self._patience,
            lambda: processor_seconds(child.process.pid) if child.process else None,
        )
        self.children.append(child)
        self._spawn(child)

    def open_gate(self) -> None:
        """Let the children that wait at the gate, and all later ones, go on."""
        os.close(self._gate_end)
        for child in self.children:
            child.liveness.begin(time.monotonic())

    def watch(self, *, until: Callable[[], bool] = lambda: False) -> bool:
        """Restart what dies, and what has to be ended since it no longer answers, until `until` holds (True) or the
        supervisor was asked to stop (False)."""
        while not self._stopping:
            if until():
                return True
            for child in self.children:
                if not child.alive():
                    self._revive(child)
                elif child.process and (reason := child.liveness.look(time.monotonic())):
                    self._end(child, child.process, reason)
            time.sleep(CHECK_SECONDS)
        return False

    def stop(self) -> None:
        """Ask every child to end, and kill those that have not in time."""
        self._stopping = True
        deadline = time.monotonic() + STOP_SECONDS + settings.IZZY_DRAIN_SECONDS
        for child in self.children:
            if child.process and child.alive():
                child.process.terminate()
        for child in self.children:
            if child.process:
                try:
                    child.process.wait(max(0.0, deadline - time.monotonic()))
                except subprocess.TimeoutExpired:
                    child.process.kill()
                    child.process.wait()

    def _revive(self, child: Child) -> None:
        now = time.monotonic()
        if child.process is not None:
            status = child.process.returncode
            reason = (
                f"killed by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
            )
            since = (
                child.started if child.answered_until is None else child.started + self._patience.first
            )
            if (child.answered_until or now) - since > STEADY_SECONDS:
                child.pause = FIRST_PAUSE
            child.due = now + child.pause
            child.pause = min(child.pause * 2, LONGEST_PAUSE)
            child.process = child.answered_until = None
            self.say(f"The {child.name} process ended ({reason}); starting it again.")
        elif now >= child.due:
            self._spawn(child)

    def _spawn(self, child: Child) -> None:
        child.started = time.monotonic()
        child.liveness.begin(child.started)
        probe = child.liveness.probe
        # In a process group of their own: Ctrl+C reaches the supervisor alone, which then ends them in order.
        child.process = subprocess.Popen(  # noqa: S603  our own manage.py
            child.command,
            stdin=subprocess.DEVNULL,
            pass_fds=[self._parent, self._gate, *probe.descriptors],
            env={**os.environ, PARENT: str(self._parent), GATE: str(self._gate), **probe.environment},
            process_group=0,
        )

    def _end(self, child: Child, process: subprocess.Popen[bytes], reason: str) -> None:
        """Has a process that no longer answers write its stacks, asks it to end, and kills it where it does not."""
        child.answered_until = child.liveness.silent_since
        self.say(f"The {child.name} process is ended: {reason}. What it was doing:")
        process.send_signal(WRITE_STACKS)
        self._wait(process, self._patience.stacks)
        process.terminate()
        self._wait(process, self._patience.end)
        process.kill()
        process.wait()
        self._note(child.name, reason)

    def _wait(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < deadline and not self._stopping:
            time.sleep(0.05)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True
