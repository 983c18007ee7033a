"""Keeps the processes of one Izzy running: starts them, restarts what dies, and stops them together."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from apps.core.lifeline import GATE, LIFELINE

CHECK_SECONDS = 0.25
STOP_SECONDS = 15.0
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
STEADY_SECONDS = 60.0


@dataclass
class Child:
    """One process. After each death the pause before the next start doubles, until it has run for a minute."""

    name: str
    command: Sequence[str]
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    pause: float = FIRST_PAUSE
    due: float = field(default=0.0)

    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Supervisor:
    """Runs the commands (arguments for manage.py) by name until SIGTERM, SIGINT, SIGHUP or `stop`."""

    def __init__(self, commands: dict[str, Sequence[str]], manage: Path, say: Callable[[str], None]) -> None:
        self._commands = {
            name: [sys.executable, str(manage), *arguments] for name, arguments in commands.items()
        }
        self.children: list[Child] = []
        self.say = say
        self._stopping = threading.Event()
        self._lifeline, self._lifeline_end = os.pipe()
        self._gate, self._gate_end = os.pipe()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def start(self, name: str) -> None:
        child = Child(name, self._commands[name])
        self.children.append(child)
        self._spawn(child)

    def open_gate(self) -> None:
        """Let the children that wait at the gate, and all later ones, go on."""
        os.close(self._gate_end)

    def watch(self, *, until: Callable[[], bool] = lambda: False) -> bool:
        """Restart what dies until `until` holds (True) or the supervisor was told to stop (False)."""
        while not self._stopping.is_set():
            if until():
                return True
            for child in self.children:
                if not child.alive():
                    self._revive(child)
            self._stopping.wait(CHECK_SECONDS)
        return False

    def stop(self) -> None:
        """Ask every child to end, and kill after 15 seconds those that have not."""
        self._stopping.set()
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
            if now - child.started > STEADY_SECONDS:
                child.pause = FIRST_PAUSE
            child.due = now + child.pause
            child.pause = min(child.pause * 2, LONGEST_PAUSE)
            child.process = None
            self.say(f"The {child.name} process ended ({_reason(status)}); starting it again.")
        elif now >= child.due:
            self._spawn(child)

    def _spawn(self, child: Child) -> None:
        child.started = time.monotonic()
        # In a process group of their own: Ctrl+C reaches the supervisor alone, which then ends them in order.
        child.process = subprocess.Popen(  # noqa: S603  our own manage.py
            child.command,
            stdin=subprocess.DEVNULL,
            pass_fds=[self._lifeline, self._gate],
            env={**os.environ, LIFELINE: str(self._lifeline), GATE: str(self._gate)},
            process_group=0,
        )

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._stopping.set()


def _reason(status: int | None) -> str:
    if status is not None and status < 0:
        return f"killed by {signal.Signals(-status).name}"
    return f"exit status {status}"
