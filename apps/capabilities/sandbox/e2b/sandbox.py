"""One sandbox at E2B: what is asked of it, and how each call ends."""

import asyncio
import json
import logging
import secrets
import shlex
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from typing import Any

from apps.core.errors import InvalidInput
from apps.core.text import storable

from ..base import (
    HOME,
    CodeResult,
    CommandResult,
    ErrorCode,
    InstallFailed,
    Output,
    Progress,
    RunError,
    RunResult,
    SandboxGone,
    SandboxSpec,
    emit,
    writable_path,
)
from ..bubblewrap.inside.answers import end_of
from .answers import MESSAGE_CHARS, MarkedOutput, answer_error, inside_script

logger = logging.getLogger(__name__)

ALL = "0.0.0.0/0"
ANY_PUBLIC = "*"
PRIVATE = [
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
]
VALUE_CHARS = 20_000
KILL_SECONDS = 10.0
GRACE_SECONDS = 5.0
"""Beyond a time limit, for the sandbox to say itself that it was reached."""
OWN = "/home/user/.izzy"
SIGNALLED = range(129, 129 + 64)
KILLED = -9
PIP = "python3 -m pip install --no-input --disable-pip-version-check --no-cache-dir --only-binary=:all: --quiet"
QUOTED_CHARS = 2_000


def network_for(hosts: Collection[str]) -> dict[str, Any]:
    """E2B's allow-list of these hosts (`name` or `name:port`; E2B knows names alone); all else is denied. `*` is any
    public host."""
    if ANY_PUBLIC in hosts:
        return {"deny_out": PRIVATE}
    names = sorted(
        {host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host for host in hosts}
    )
    return {"allow_out": names, "deny_out": [ALL]} if names else {"deny_out": [ALL]}


def timed_out(seconds: float) -> RunError:
    return RunError(ErrorCode.TIMED_OUT, f"It did not finish within {seconds:g} seconds.")


def failed(error: Exception) -> RunError:
    """For what the SDK raised."""
    logger.warning("E2B failed: %s: %s", type(error).__name__, error)
    message = f"The sandbox failed ({type(error).__name__}). Run it again."
    return RunError(ErrorCode.SANDBOX_FAILED, message)


class E2BSandbox:
    """See `base.Sandbox`. `remote` is an object of the SDK."""

    def __init__(
        self, remote: Any, spec: SandboxSpec, progress: Progress | None, hosts: Collection[str]
    ) -> None:
        self._hosts = frozenset(hosts)
        self._remote = remote
        self._spec = spec
        self._progress = progress
        self._ends = float("inf")
        self._gone: RunError | None = None
        self._closing = asyncio.Lock()
        self._ending: asyncio.Future[RunError] | None = None

    async def install(self, lines: list[str], *, seconds: float) -> None:
        """Installs the requirements, then closes the way to the package index. Raises InstallFailed."""
        await emit(self._progress, {"status": "installing"})
        await self._remote.files.write(f"{OWN}/requirements.txt", "\n".join(lines) + "\n")
        done = await self._shell(f"{PIP} -r {OWN}/requirements.txt", seconds=seconds, env={})
        if done.error is not None:
            raise InstallFailed(f"The requirements could not be installed within {seconds:g} seconds.")
        if done.exit_code:
            text = (done.stderr.strip() or done.stdout.strip())[-QUOTED_CHARS:]
            raise InstallFailed(f"The requirements could not be installed:\n{text}")
        await self._remote.update_network(network_for(self._hosts))

    async def begin(self, spare: float) -> None:
        """From now on the wall time counts; E2B ends the sandbox a little later by itself."""
        wall = self._spec.limits.wall_seconds
        self._ends = time.monotonic() + wall
        if self._spec.requirements.strip():
            await self._remote.set_timeout(round(wall + spare))
        await emit(self._progress, {"status": "running"})

    # --- what the protocol offers ---

    async def allow_hosts(self, hosts: Collection[str]) -> None:
        self._hosts |= frozenset(hosts)
        async with self._call(self._seconds(None)) as output:
            await self._remote.update_network(network_for(self._hosts))
        if output.error is not None:
            raise SandboxGone(output.error)

    async def write_file(self, path: str, content: str | bytes) -> None:
        data = content.encode("utf-8", "replace") if isinstance(content, str) else content
        limits = self._spec.limits
        if len(data) > limits.file_bytes:
            raise InvalidInput(f"{path} is larger than {limits.file_bytes:,} bytes.", field="content")
        async with self._call(limits.wall_seconds) as output:
            await self._remote.files.write(writable_path(path), data)
        if output.error is not None:
            raise SandboxGone(output.error)

    async def run_code(self, code: str, *, seconds: float | None = None) -> CodeResult:
        """A time-out ends the request, upon which E2B interrupts the kernel."""
        limit = self._seconds(seconds)
        value = ""
        async with self._call(limit + GRACE_SECONDS) as output:
            execution = await self._remote.run_code(
                code,
                envs=dict(self._spec.env),
                timeout=limit,
                on_stdout=lambda message: output.feed("stdout", message.line.encode("utf-8", "replace")),
                on_stderr=lambda message: output.feed("stderr", message.line.encode("utf-8", "replace")),
            )
            if error := execution.error:
                kind = ErrorCode.OUT_OF_MEMORY if error.name == "MemoryError" else ErrorCode.RAISED
                text = storable(str(error.traceback or f"{error.name}: {error.value}"))
                output.error = RunError(kind, end_of(text, MESSAGE_CHARS))
            else:
                value = storable(execution.text or "")
        if len(value) > VALUE_CHARS:
            value = f"{value[:VALUE_CHARS]}… ({len(value):,} characters)"
        return CodeResult(value=value, error=output.error, **output.report())

    async def run_command(self, command: str, *, seconds: float | None = None) -> CommandResult:
        return await self._shell(command, seconds=self._seconds(seconds), env=self._spec.env)

    async def run_capability(self, files: Mapping[str, str], args: dict[str, Any]) -> RunResult:
        limits = self._spec.limits
        mark = secrets.token_hex(16)
        job = {
            "mark": mark,
            "args": args,
            "result_bytes": limits.result_bytes,
            "memory_bytes": limits.memory_bytes,
            "cpu_seconds": limits.cpu_seconds,
            "file_bytes": limits.file_bytes,
        }
        written = {writable_path(path): content for path, content in files.items()}
        written |= {f"{OWN}/inside.py": inside_script(), f"{OWN}/job.json": json.dumps(job)}
        entries = [{"path": path, "data": content} for path, content in written.items()]
        limit = self._seconds(None)
        async with self._call(limit) as output:
            marked = MarkedOutput(output, mark, limits.result_bytes)
            await self._remote.files.write_files(entries)
            program = f"exec python3 -B {OWN}/inside.py"
            await self._run(program, output, limit, self._spec.env, on_stdout=marked.feed)
        answer = marked.finish()
        error = output.error or answer_error(answer)
        result = storable(answer["result"]) if error is None and answer is not None else None
        return RunResult(result=result, error=error, **output.report())

    async def close(self) -> None:
        """Ends it; where that fails now, E2B does when its time is over."""
        self._gone = self._gone or RunError(ErrorCode.CANCELLED, "The sandbox was closed.")
        async with self._closing:
            if self._remote is None:
                return
            try:
                await asyncio.wait_for(asyncio.shield(self._remote.kill()), KILL_SECONDS)
            except Exception as error:  # noqa: BLE001  whatever the SDK raises: E2B's own time limit remains
                name = self._remote.sandbox_id
                logger.warning("sandbox %s could not be ended: %s", name, type(error).__name__)
                return
            self._remote = None

    # --- how ---

    def _seconds(self, wanted: float | None) -> float:
        """Never more than the sandbox has left."""
        left = self._ends - time.monotonic()
        return max(0.1, left if wanted is None else min(wanted, left))

    async def _shell(self, command: str, *, seconds: float, env: Mapping[str, str]) -> CommandResult:
        """`timeout` ends the command with all it started: they are one process group."""
        wrapped = f"exec timeout --signal=KILL {seconds:.3f} /bin/sh -c {shlex.quote(command)}"
        code = KILLED
        async with self._call(seconds + GRACE_SECONDS) as output:
            code = await self._run(wrapped, output, seconds + GRACE_SECONDS, env)
        report = output.report()
        error = output.error
        if code == KILLED and error is None and report["duration_ms"] >= seconds * 1000:
            error = timed_out(seconds)
        return CommandResult(exit_code=code, error=error, **report)

    async def _run(
        self,
        command: str,
        output: Output,
        seconds: float,
        env: Mapping[str, str],
        on_stdout: Callable[[str], None] | None = None,
    ) -> int:
        """The exit code; -N for signal N, as the shell reports it."""
        import e2b

        try:
            await self._remote.commands.run(
                command,
                envs=dict(env),
                cwd=str(HOME),
                on_stdout=on_stdout
                or (lambda text: output.feed("stdout", text.encode("utf-8", "replace"))),
                on_stderr=lambda text: output.feed("stderr", text.encode("utf-8", "replace")),
                timeout=seconds,
                retain_output=False,
            )
        except e2b.CommandExitException as error:
            code = int(error.exit_code)
            return 128 - code if code in SIGNALLED else code
        return 0

    @asynccontextmanager
    async def _call(self, seconds: float) -> AsyncIterator[Output]:
        """Around everything that is asked of the sandbox: its end, time limits, floods, cancellation."""
        if self._gone is not None or self._remote is None:
            raise SandboxGone(self._gone or RunError(ErrorCode.CANCELLED, "The sandbox was closed."))
        output = Output(self._spec.limits, self._progress, self._flooded)
        async with output.emitting():
            try:
                async with asyncio.timeout(seconds + GRACE_SECONDS):
                    yield output
            except asyncio.CancelledError:
                await asyncio.shield(self._end(RunError(ErrorCode.CANCELLED, "The run was cancelled.")))
                raise
            except (InvalidInput, SandboxGone):
                raise
            except Exception as error:  # noqa: BLE001  the SDK's errors have no common base
                output.error = await self._failed(error, seconds)

    def _flooded(self, why: RunError) -> None:
        """Ending the sandbox ends the call under way; raising within the SDK's own tasks would not, reliably."""
        if self._gone is None:
            self._gone = why
            self._ending = asyncio.ensure_future(self._end(why))

    async def _failed(self, error: Exception, seconds: float) -> RunError:
        import e2b

        if self._gone is not None:
            return self._gone
        if time.monotonic() >= self._ends:
            return await self._end(timed_out(self._spec.limits.wall_seconds))
        gone = (e2b.SandboxNotRunningException, e2b.SandboxNotFoundException)
        if (
            isinstance(error, e2b.TimeoutException)
            and not isinstance(error, gone)
            and await self._runs()
        ):
            return timed_out(seconds)
        if isinstance(error, TimeoutError):
            return await self._end(timed_out(seconds))
        return await self._end(failed(error))

    async def _runs(self) -> bool:
        """The SDK tells of code that takes too long and of a sandbox that is no more by the same exception."""
        try:
            return bool(await self._remote.is_running(request_timeout=KILL_SECONDS))
        except Exception:  # noqa: BLE001  the SDK's errors have no common base; what cannot be asked is not there
            return False

    async def _end(self, why: RunError) -> RunError:
        self._gone = self._gone or why
        await self.close()
        return why
