"""Keeps the processes of one Izzy running: starts them, restarts what dies or no longer answers, and stops them together."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from apps.core.jobs.liveness import Liveness, Patience, Probe, processor_seconds
from apps.core.jobs.parent_watch import GATE, PARENT, WRITE_STACKS

CHECK_SECONDS = 0.25
STOP_SECONDS = 15.0
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
        commands: dict[str, Sequence[str]],
        manage: Path,
        say: Callable[[str], None],
        note: Callable[[str, str], None] = lambda name, reason: None,
        patience: Patience = Patience(),  # noqa: B008  it cannot be changed
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
        supervisor was told to stop (False)."""
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
        """Ask every child to end, and kill after 15 seconds those that have not."""
        self._stopping = True
        deadline = time.monotonic() + STOP_SECONDS
        for child in self.children:
            if child.process and child.alive():
                child.process.terminate()
        for child in self.children:
            if child.process:
                self._reap(child.process, deadline)

    def _reap(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _revive(self, child: Child) -> None:
        now = time.monotonic()
        if child.process is not None:
            status = child.process.returncode
            since = child.started if child.answered_until is None else child.started + self._patience.first
            if (child.answered_until or now) - since > STEADY_SECONDS:
                child.pause = FIRST_PAUSE
            child.due = now + child.pause
            child.pause = min(child.pause * 2, LONGEST_PAUSE)
            child.process = child.answered_until = None
            self.say(f"The {child.name} process ended ({_reason(status)}); starting it again.")
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


def _reason(status: int | None) -> str:
    if status is not None and status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
