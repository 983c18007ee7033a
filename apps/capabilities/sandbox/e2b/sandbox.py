"""One sandbox at E2B."""

import json
import logging
import secrets
import shlex
import time
from collections.abc import Collection, Mapping
from typing import Any

from apps.core.errors import InvalidInput

from ..base import (
    CodeResult,
    CommandResult,
    Outcome,
    RunError,
    SandboxGone,
)
from ..output import storable
from ..paths import HOME, writable_path
from .answers import InstallError, answer_error, code_error, timed_out, value_text
from .calls import GRACE_SECONDS, Calls
from .network import network_for
from .output import MarkedStream
from .script import inside_script

logger = logging.getLogger(__name__)

OWN = "/home/user/.izzy"
SIGNALLED = range(129, 129 + 64)
KILLED = -9
PIP = (
    "python3 -m pip install --no-input --disable-pip-version-check --no-cache-dir --only-binary=:all: --quiet"
)
QUOTED_CHARS = 2_000


class E2BSandbox(Calls):
    """See `base.Sandbox`."""

    async def begin(self, spare: float) -> None:
        """From now on the wall time counts; E2B ends the sandbox a little later by itself."""
        wall = self._spec.limits.wall_seconds
        self._ends = time.monotonic() + wall
        if self._spec.requirements.strip():
            await self._remote.set_timeout(round(wall + spare))
        await self._tell("running")

    async def install(self, lines: list[str], *, seconds: float) -> None:
        """Installs the requirements, then closes the way to the package index. Raises InstallError."""
        await self._tell("installing")
        await self._remote.files.write(f"{OWN}/requirements.txt", "\n".join(lines) + "\n")
        done = await self._shell(f"{PIP} -r {OWN}/requirements.txt", seconds=seconds, env={})
        if done.error is not None:
            raise InstallError(f"The requirements could not be installed within {seconds:g} seconds.")
        if done.exit_code:
            said = (done.stderr.strip() or done.stdout.strip())[-QUOTED_CHARS:]
            raise InstallError(f"The requirements could not be installed:\n{said}")
        await self._remote.update_network(network_for(self._hosts))

    async def allow_hosts(self, hosts: Collection[str]) -> None:
        """See `base.Sandbox`."""
        self._hosts |= frozenset(hosts)
        async with self._call(self._seconds(None)) as problem:
            await self._remote.update_network(network_for(self._hosts))
        if problem.error is not None:
            raise SandboxGone(problem.error)

    async def write_file(self, path: str, content: str | bytes) -> None:
        """See `base.Sandbox`."""
        size = len(content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content)
        if size > self._spec.limits.file_bytes:
            raise InvalidInput(
                f"{path} is larger than {self._spec.limits.file_bytes:,} bytes.", field="content"
            )
        data = content.encode("utf-8", "replace") if isinstance(content, str) else content
        async with self._call(self._spec.limits.wall_seconds):
            await self._remote.files.write(writable_path(path), data)

    async def run_code(self, code: str, *, seconds: float | None = None) -> CodeResult:
        """See `base.Sandbox`. A time-out ends the request, upon which E2B interrupts the kernel."""
        out, err, took = self._streams()
        limit = self._seconds(seconds)
        error: RunError | None = None
        execution = None
        async with self._call(limit + GRACE_SECONDS, out, err) as problem:
            execution = await self._remote.run_code(
                code,
                envs=dict(self._spec.env),
                timeout=limit,
                on_stdout=lambda said: out.take(said.line),
                on_stderr=lambda said: err.take(said.line),
            )
        error = problem.error
        if execution is not None and execution.error is not None:
            error = code_error(execution.error)
        value = value_text(execution.text) if execution is not None and error is None else ""
        return CodeResult(
            ok=error is None, value=value, error=error, stdout=out.text, stderr=err.text, duration_ms=took()
        )

    async def run_command(self, command: str, *, seconds: float | None = None) -> CommandResult:
        """See `base.Sandbox`."""
        return await self._shell(command, seconds=self._seconds(seconds), env=self._spec.env)

    async def run_capability(self, files: Mapping[str, str], args: dict[str, Any]) -> Outcome:
        """See `base.Sandbox`."""
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
        out, err, took = self._streams()
        marked = MarkedStream(out, mark)
        limit = self._seconds(None)
        async with self._call(limit, out, err) as problem:
            await self._remote.files.write_files(entries)
            await self._run(f"exec python3 -B {OWN}/inside.py", marked.take, err.take, limit, self._spec.env)
        answer = await marked.finish()
        error = problem.error or answer_error(answer)
        result = str(answer["result"]) if error is None and answer is not None else None
        return Outcome(
            ok=error is None,
            result=storable(result) if result is not None else None,
            error=error,
            stdout=out.text,
            stderr=err.text,
            duration_ms=took(),
        )

    async def _shell(self, command: str, *, seconds: float, env: Mapping[str, str]) -> CommandResult:
        """`timeout` ends the command with all it started: they are one process group."""
        out, err, took = self._streams()
        wrapped = f"exec timeout --signal=KILL {seconds:.3f} /bin/sh -c {shlex.quote(command)}"
        code = KILLED
        async with self._call(seconds + GRACE_SECONDS, out, err) as problem:
            code = await self._run(wrapped, out.take, err.take, seconds + GRACE_SECONDS, env)
        if code == KILLED and problem.error is None and took() >= seconds * 1000:
            problem.error = timed_out(seconds)
        return CommandResult(
            exit_code=code, stdout=out.text, stderr=err.text, error=problem.error, duration_ms=took()
        )

    async def _run(self, command: str, out: Any, err: Any, seconds: float, env: Mapping[str, str]) -> int:
        """The exit code; -N for signal N, as the shell reports it."""
        import e2b

        try:
            await self._remote.commands.run(
                command,
                envs=dict(env),
                cwd=str(HOME),
                on_stdout=out,
                on_stderr=err,
                timeout=seconds,
                retain_output=False,
            )
        except e2b.CommandExitException as error:
            code = int(error.exit_code)
            return 128 - code if code in SIGNALLED else code
        return 0
