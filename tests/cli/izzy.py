"""The command line as a person or a script runs it: in a pipe or on a terminal. In a pipe it runs in this process, which takes a
tenth of the time of one of its own, but where a test says otherwise."""

import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fcntl import ioctl
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

from izzy_cli.__main__ import main
from tests.waiting import PATIENCE, eventually

STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@dataclass
class Done:
    """How a command ended, and what it wrote."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    def ok(self) -> Self:
        assert self.code == 0, f"exit code {self.code}: {self.err}{self.text}"
        return self


@dataclass
class Izzy:
    """`izzy` with a home of its own, signed in where `url` and `token` are given."""

    home: Path
    url: str = ""
    token: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    command: str = sys.executable  # which Python has it

    def run(self, *arguments: str, given: str | bytes = b"", **environment: str) -> Done:
        """Without a terminal; `given` is its standard input."""
        streams = Streams(given.encode() if isinstance(given, str) else given)
        with (
            streams.put_in_place(["izzy", *arguments]),
            patch.dict(os.environ, self.variables(environment), clear=True),
            patch.object(tempfile, "tempdir", None),  # where TMPDIR says
        ):
            try:
                main()
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
        return self._done(code, streams.out.getvalue(), streams.err.getvalue())

    def process(self, *arguments: str, given: str | bytes = b"", **environment: str) -> Done:
        """The same in a process of its own: for what the start, the locale or the streams of one decide."""
        done = subprocess.run(
            [self.command, "-m", "izzy_cli", *arguments],
            input=given.encode() if isinstance(given, str) else given,
            capture_output=True,
            env=self.variables(environment),
            timeout=PATIENCE,
            check=False,
        )
        return self._done(done.returncode, done.stdout, done.stderr)

    def _done(self, code: int, out: bytes, err: bytes) -> Done:
        error = err.decode(errors="replace")
        assert "Traceback" not in error, error
        if self.token:
            assert self.token not in error
        return Done(code, out, error)

    def variables(self, more: dict[str, str] | None = None) -> dict[str, str]:
        """The environment of its processes."""
        kept = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV")
        own = {"HOME": str(self.home), "IZZY_URL": self.url, "IZZY_TOKEN": self.token}
        clean = {name: os.environ[name] for name in kept if name in os.environ}
        return clean | {"TERM": "xterm"} | own | self.environment | (more or {})

    @contextmanager
    def terminal(self, *arguments: str, columns: int = 80, **environment: str) -> Iterator["Terminal"]:
        """On a terminal of so many columns."""
        child, master = pty.fork()
        if child == 0:
            command = [self.command, "-m", "izzy_cli", *arguments]
            signal.signal(
                signal.SIGINT, signal.SIG_DFL
            )  # ignored where the tests run in a shell's background
            os.execve(self.command, command, self.variables(environment))
        ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        terminal = Terminal(child, master)
        try:
            yield terminal
        finally:
            terminal.close()


class Streams:
    """Standard input, output and error as a process has them in pipes."""

    def __init__(self, given: bytes) -> None:
        self.given, self.out, self.err = BytesIO(given), BytesIO(), BytesIO()

    @contextmanager
    def put_in_place(self, arguments: list[str]) -> Iterator[None]:
        """For as long as the command runs, with its arguments."""
        given, out, err = (TextIOWrapper(stream, "utf-8") for stream in (self.given, self.out, self.err))
        with patch.multiple(sys, argv=arguments, stdin=given, stdout=out, stderr=err):
            yield
        for text in (given, out, err):
            text.detach()  # or it closes the stream


class Terminal:
    """The other end of a terminal: what the command wrote, and a keyboard."""

    def __init__(self, process: int, master: int) -> None:
        self.process, self.master = process, master
        self.written = ""
        self.seen = 0
        self.code: int | None = None

    @property
    def text(self) -> str:
        """All that was written, without colours."""
        return STYLE.sub("", self.written).replace("\r\n", "\n")

    def expect(self, what: str) -> None:
        """Wait until this stands after what was last expected."""
        deadline = time.monotonic() + PATIENCE
        while (at := self.text.find(what, self.seen)) < 0:
            assert self._read(deadline), f"{what!r} never came:\n{self.text}"
        self.seen = at + len(what)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def line(self, text: str) -> None:
        self.type(text + "\r")

    def interrupt(self) -> None:
        self.type("\x03")

    def interrupt_at_prompt(self) -> None:
        """Press Ctrl-C when it waits for a key: Python does not notice one that comes just as it has read a key."""
        eventually(lambda: self._state() == "S", lambda: f"it never waited:\n{self.text}")
        self.interrupt()

    def _state(self) -> str:
        """The kernel's letter: S while it sleeps until something comes."""
        return Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()[0]

    def end(self) -> int:
        """Wait until the command has ended; its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self._read(deadline):
            pass
        return self._wait()

    def close(self) -> None:
        if self.code is None:
            os.kill(self.process, signal.SIGKILL)
            self._wait()
        os.close(self.master)

    def _wait(self) -> int:
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        return self.code

    def _read(self, deadline: float) -> bool:
        """More of what it writes; False when it has closed its end."""
        ready = select.select([self.master], [], [], max(0, deadline - time.monotonic()))[0]
        assert ready, f"nothing came for too long:\n{self.text}"
        try:
            piece = os.read(self.master, 65536)
        except OSError:  # Linux says so where there is nobody at the other end
            return False
        self.written += piece.decode(errors="replace")
        return bool(piece)


def fields_of(done: Done) -> list[list[str]]:
    """The rows of a table in a pipe."""
    return [line.split("\t") for line in done.ok().text.splitlines()]


def only(rows: list[Any]) -> Any:
    assert len(rows) == 1, rows
    return rows[0]
