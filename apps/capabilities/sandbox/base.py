"""The protocols of sandboxes and backends, their types, and a call's output: the beginning is kept, all of it is counted, and
its lines are emitted as they come."""

import asyncio
import codecs
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Protocol
from uuid import UUID

from apps.core.errors import InvalidInput, IzzyError, Unavailable
from apps.core.health import CheckResult
from apps.core.text import storable

from .bubblewrap.inside.answers import end_of

logger = logging.getLogger(__name__)

MEGABYTE = 1_000_000
EMIT_EVERY_SECONDS = 0.1
EMITTED_CHARS = 4000
"""At most so much of what was printed within a tenth of a second is emitted; the newest."""


class Purpose(StrEnum):
    RUN = "run"
    BUILD = "build"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of one sandbox. A backend that cannot enforce one of them itself documents who does."""

    wall_seconds: float  # of the sandbox's whole life, the installation of requirements not included
    cpu_seconds: int
    memory_bytes: int  # of all its processes together
    processes: int
    file_bytes: int
    files: int = 20_000
    stdout_bytes: int = MEGABYTE  # kept of standard output and of standard error each
    flood_bytes: int = 64 * MEGABYTE  # written before the run is ended
    result_bytes: int = MEGABYTE
    transfer_bytes: int = 200 * MEGABYTE


RUN_LIMITS = Limits(
    wall_seconds=180, cpu_seconds=60, memory_bytes=512 * MEGABYTE, processes=64, file_bytes=64 * MEGABYTE
)
BUILD_LIMITS = Limits(
    wall_seconds=600,
    cpu_seconds=300,
    memory_bytes=1024 * MEGABYTE,
    processes=128,
    file_bytes=256 * MEGABYTE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """A request for a sandbox: its user, its purpose, and what it may reach.

    `hosts` are the approved names, each `name` or `name:port`; without a port 80 and 443 are meant. Empty: no network.
    `env` are secrets and the like, by name. `requirements` is the text of a requirements.txt, which may hold none of the
    values in `secrets`.
    """

    user_id: UUID
    purpose: Purpose = Purpose.RUN
    hosts: frozenset[str] = frozenset()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: Sequence[str] = field(default=(), repr=False)
    requirements: str = ""
    limits: Limits = RUN_LIMITS


class ErrorCode(StrEnum):
    INSTALL_FAILED = "install_failed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    RAISED = "raised"
    BAD_RESULT = "bad_result"
    TOO_MUCH_OUTPUT = "too_much_output"
    LIMIT_EXCEEDED = "limit_exceeded"
    CANCELLED = "cancelled"
    SANDBOX_FAILED = "sandbox_failed"


@dataclass(frozen=True, slots=True)
class RunError:
    """`message` is for people and for the model; of `raised` it is the end of the traceback."""

    code: ErrorCode
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How something in a sandbox ended. Everything in it is text of the tool: untrusted, and not yet scrubbed of secrets."""

    error: RunError | None = None
    stdout: str = ""
    stderr: str = ""
    duration_ms: int = 0

    @property
    def ok(self) -> bool:
        return self.error is None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult(Result):
    """How `run(args)` of a capability ended."""

    result: str | None = None  # its text where `ok`
    hosts_used: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeResult(Result):
    """One execution in the stateful kernel."""

    value: str = ""  # the repr of a last expression, "" where there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult(Result):
    """`error` is set where the sandbox ended the command (timed out, …)."""

    exit_code: int  # -N where signal N ended it

    @property
    def ok(self) -> bool:
        return self.exit_code == 0 and self.error is None


Progress = Callable[[dict[str, Any]], Awaitable[None]]
"""Called with `{"status": "queued"|"preparing"|"installing"|"running"}` and
`{"status": "output", "stream": "stdout"|"stderr", "text": lines}`."""


class SandboxUnavailable(Unavailable):
    """There is no sandbox; the message says what to install or to set. Nothing was run."""

    default_code = "sandbox_unavailable"
    default_message = "There is no sandbox to run tools in."


class InstallFailed(IzzyError):
    """The requirements could not be installed; the message names the line or quotes the installer."""

    default_code = ErrorCode.INSTALL_FAILED.value
    default_message = "The requirements could not be installed."
    status = 422


class SandboxGone(IzzyError):
    """The sandbox ended: closed, or killed for `error`'s reason. No further call of it succeeds."""

    default_code = ErrorCode.SANDBOX_FAILED.value
    default_message = "The sandbox has ended."

    def __init__(self, error: RunError) -> None:
        super().__init__(error.message, code=error.code.value)
        self.error = error


class Sandbox(Protocol):
    """One fresh, isolated machine of one user. Paths are relative to its home directory, or absolute in /tmp.

    Calls are made one after the other. What a *tool* does wrong comes back in the result (`error`); `SandboxGone` is
    raised where an earlier call ended the sandbox. Cancelling a call kills the sandbox at once.
    """

    async def write_file(self, path: str, content: str | bytes) -> None:
        """Makes folders as needed. Raises InvalidInput for a path outside and for content beyond the limits."""

    async def run_code(self, code: str, *, seconds: float | None = None) -> CodeResult:
        """In a kernel that keeps its variables. A time-out interrupts it (KeyboardInterrupt), and where that does not help
        ends the sandbox."""

    async def run_command(self, command: str, *, seconds: float | None = None) -> CommandResult:
        """By /bin/sh in the home directory. A time-out kills the command and all it started."""

    async def run_capability(self, files: Mapping[str, str], args: dict[str, Any]) -> RunResult:
        """Writes the files and calls `run(args)` of main.py in a process of its own."""

    async def allow_hosts(self, hosts: Collection[str]) -> None:
        """Lets the running sandbox of a build reach these hosts too; the entry `*` means any public host."""

    async def close(self) -> None:
        """Kills what runs and leaves nothing. May be called again, and whatever happened before."""


class Backend(Protocol):
    name: str

    async def create(self, spec: SandboxSpec, *, progress: Progress | None = None) -> Sandbox:
        """A sandbox with the requirements installed. Raises SandboxUnavailable, InstallFailed, SandboxGone."""

    def probe(self) -> CheckResult:
        """Whether sandboxes can be made here, and if not the cause and what to do. Synchronous, about a second at most."""


HOME = PurePosixPath("/home/user")
WRITABLE = (HOME, PurePosixPath("/tmp"))  # noqa: S108  of the sandbox
MAX_PATH_BYTES = 1000


def writable_path(path: str) -> str:
    """Absolute and in the home directory or in /tmp of the sandbox. Raises InvalidInput."""
    if not path or "\x00" in path or len(path.encode("utf-8", "replace")) > MAX_PATH_BYTES:
        raise InvalidInput("That is no file name.", field="path")
    full = HOME / path
    inside = any(place in full.parents for place in WRITABLE)
    if ".." in full.parts or not inside or path.endswith("/"):
        raise InvalidInput(
            f"{path[:200]} is outside the sandbox's home directory and /tmp.", field="path"
        )
    return str(full)


@dataclass(slots=True)
class Captured:
    """One stream during one call."""

    keep: int  # bytes
    total: int = 0
    _kept: bytearray = field(default_factory=bytearray)
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=partial(codecs.getincrementaldecoder("utf-8"), "replace")
    )
    pending: str = ""  # text not emitted yet

    def feed(self, data: bytes) -> None:
        room = self.keep - len(self._kept)
        self.total += len(data)
        if room > 0:
            self._kept += data[:room]
            self.pending += self._decoder.decode(data[:room])

    def text(self) -> str:
        text: str = storable(self._kept.decode("utf-8", "replace"))
        missing = self.total - len(self._kept)
        return f"{text}\n… {missing:,} more bytes were not kept." if missing else text

    def lines(self, *, all_of_it: bool) -> str:
        """Takes the text to emit next: whole lines, at the end the rest too."""
        cut = len(self.pending) if all_of_it else self.pending.rfind("\n") + 1
        text, self.pending = self.pending[:cut], self.pending[cut:]
        return str(storable(end_of(text, EMITTED_CHARS)))


class Output:
    """Standard output and error of one call. `on_flood` is called where more is written than any tool has reason to, again
    with each piece that comes after."""

    def __init__(
        self, limits: Limits, progress: Progress | None, on_flood: Callable[[RunError], None]
    ) -> None:
        self.error: RunError | None = None  # why the call did not end as it should
        self._streams = {name: Captured(limits.stdout_bytes) for name in ("stdout", "stderr")}
        self._flood_bytes = limits.flood_bytes
        self._progress = progress
        self._on_flood = on_flood
        self._began = time.monotonic()

    def feed(self, stream: str, data: bytes) -> None:
        self._streams[stream].feed(data)
        if sum(captured.total for captured in self._streams.values()) > self._flood_bytes:
            self.flooded()

    def flooded(self) -> None:
        message = f"It printed more than {self._flood_bytes // 1_000_000} MB."
        self._on_flood(RunError(ErrorCode.TOO_MUCH_OUTPUT, message))

    def report(self) -> dict[str, Any]:
        """Returns what every result says: both streams' text and how long the call took."""
        texts = {name: captured.text() for name, captured in self._streams.items()}
        return {**texts, "duration_ms": round((time.monotonic() - self._began) * 1000)}

    @asynccontextmanager
    async def emitting(self) -> AsyncIterator[None]:
        """Lines go to `progress` while the block runs, the last of them at its end, where nothing was raised."""
        if self._progress is None:
            yield
            return
        ended = asyncio.Event()
        emitter = asyncio.create_task(self._emit_until(ended))
        try:
            yield
        except BaseException:
            emitter.cancel()
            raise
        ended.set()
        await emitter

    async def _emit_until(self, ended: asyncio.Event) -> None:
        """Whole lines now and then, and the rest when the call has ended."""
        over = False
        while not over:
            with suppress(TimeoutError):
                async with asyncio.timeout(EMIT_EVERY_SECONDS):
                    await ended.wait()
            over = ended.is_set()
            for name, captured in self._streams.items():
                if captured.pending and (text := captured.lines(all_of_it=over)):
                    await emit(self._progress, {"status": "output", "stream": name, "text": text})


async def emit(progress: Progress | None, event: dict[str, Any]) -> None:
    """A listener that fails does not end the run."""
    if progress is None:
        return
    try:
        await progress(event)
    except Exception:
        logger.exception("a listener to a tool's progress failed")
