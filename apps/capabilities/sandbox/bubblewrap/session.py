"""A sandbox of bubblewrap: the calls that the protocol offers, each a job for the runner within."""

import asyncio
import contextlib
import logging
import os
import signal
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import ExitStack, asynccontextmanager
from typing import Any

from apps.capabilities.egress import EgressProxy
from apps.capabilities.sandbox.base import (
    CodeResult,
    CommandResult,
    ErrorCode,
    Outcome,
    Progress,
    RunError,
    SandboxGone,
    SandboxSpec,
)
from apps.capabilities.sandbox.output import Output, storable, tell
from apps.capabilities.sandbox.paths import writable_path
from apps.core.errors import InvalidInput

from . import processes
from .answers import answer_error, answer_text, ending, runner_limits
from .channel import BadFrame
from .process import SandboxProcess

logger = logging.getLogger(__name__)

INTERRUPT_SECONDS = 2.0


class BubblewrapSandbox:
    def __init__(
        self,
        spec: SandboxSpec,
        process: SandboxProcess,
        *,
        progress: Progress | None = None,
        proxy: EgressProxy | None = None,
        held: ExitStack | None = None,
    ) -> None:
        """`held` is given back when it is closed."""
        self.spec = spec
        self.process = process
        self._progress = progress
        self._held = held
        self._proxy = proxy
        self._kernel_pid = 0
        self._busy = asyncio.Lock()
        self._closed = False

    async def begin(self) -> None:
        if self._proxy is not None and self.process.listener is not None:
            await self._proxy.serve(self.process.listener)
        self.process.run_for(self.spec.limits.wall_seconds)
        job = {"op": "begin", "limits": runner_limits(self.spec.limits, self.process.frame_limit)}
        await self.process.send(job | {"env": dict(self.spec.env)})

    # --- what the protocol offers ---

    async def write_file(self, path: str, content: str | bytes) -> None:
        data = content.encode("utf-8", "replace") if isinstance(content, str) else content
        self._require_size(path, len(data))
        async with self._call() as output:
            job = {"op": "write", "path": writable_path(path), "data": data}
            answer = await self._exchange(job, output, None)
        if isinstance(answer, RunError):
            raise SandboxGone(answer)
        if refused := answer.get("refused"):
            raise InvalidInput(answer_text(refused), field="path")

    async def run_code(self, code: str, *, seconds: float | None = None) -> CodeResult:
        began = time.monotonic()
        async with self._call() as output:
            job = {"op": "code", "code": code.encode("utf-8", "replace")}
            answer = await self._exchange(job, output, seconds, interrupt=True)
        error = answer_error(answer)
        value = "" if isinstance(answer, RunError) else answer_text(answer.get("value"))
        return CodeResult(ok=error is None, value=value, error=error, **ending(output, began))

    async def run_command(self, command: str, *, seconds: float | None = None) -> CommandResult:
        if "\x00" in command:
            raise InvalidInput("A command has no NUL characters.", field="command")
        began = time.monotonic()
        async with self._call() as output:
            job = {"op": "command", "argv": ["/bin/sh", "-c", command]}
            answer = await self._exchange(job, output, seconds)
        if isinstance(answer, RunError):
            return CommandResult(exit_code=-signal.SIGKILL, error=answer, **ending(output, began))
        code = answer.get("exit")
        return CommandResult(exit_code=code if isinstance(code, int) else -1, **ending(output, began))

    async def run_capability(self, files: Mapping[str, str], args: dict[str, Any]) -> Outcome:
        self._require_size("The tool", sum(len(text) for text in files.values()))
        given = {writable_path(path): text.encode("utf-8", "replace") for path, text in files.items()}
        began = time.monotonic()
        async with self._call() as output:
            await tell(self._progress, {"status": "running"})
            answer = await self._exchange({"op": "capability", "files": given, "args": args}, output, None)
        error = answer_error(answer)
        result = None if isinstance(answer, RunError) else answer.get("result")
        if error is None and not isinstance(result, str):
            error = RunError(ErrorCode.BAD_RESULT, "The tool's answer could not be read.")
        used = tuple(sorted(self._proxy.used)) if self._proxy else ()
        return Outcome(
            ok=error is None,
            result=storable(result) if error is None and isinstance(result, str) else None,
            error=error,
            hosts_used=used,
            **ending(output, began),
        )

    async def allow_hosts(self, hosts: Collection[str]) -> None:
        if self._proxy is not None:
            self._proxy.allow(hosts)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self.process.end(RunError(ErrorCode.CANCELLED, "The sandbox was closed."))
        if self._proxy is not None:
            await self._proxy.close()
        await asyncio.shield(asyncio.ensure_future(self.process.wait()))
        async with self._busy:  # a call under way ends with `cancelled`
            self.process.release()
        if self._held is not None:
            await asyncio.to_thread(self._held.close)

    # --- how ---

    def _require_size(self, what: str, size: int) -> None:
        limit = self.spec.limits.file_bytes
        if size > limit:
            raise InvalidInput(f"{what} has {size:,} bytes; at most {limit:,} fit.", field="content")

    @asynccontextmanager
    async def _call(self) -> AsyncIterator[Output]:
        """One call at a time; its output; and the end of the sandbox where it is cancelled."""
        async with self._busy:
            if self._closed or not self.process.alive:
                reason = self.process.reason or RunError(ErrorCode.SANDBOX_FAILED, "The sandbox has ended.")
                raise SandboxGone(reason)
            output = Output(self.spec.limits, self._progress)
            self.process.take_output(self._taker(output))
            output.start()
            try:
                yield output
            except asyncio.CancelledError:
                self.process.end(RunError(ErrorCode.CANCELLED, "The run was stopped."))
                output.abandon()
                raise
            finally:
                self.process.take_output(None)
            await output.finish()

    def _taker(self, output: Output) -> Any:
        flood = self.spec.limits.flood_bytes

        def take(name: str, data: bytes) -> None:
            (output.stdout if name == "stdout" else output.stderr).feed(data)
            if output.total > flood:
                message = f"It printed more than {flood // 1_000_000} MB."
                self.process.end(RunError(ErrorCode.TOO_MUCH_OUTPUT, message))

        return take

    async def _exchange(
        self, job: dict[str, Any], output: Output, seconds: float | None, *, interrupt: bool = False
    ) -> dict[str, Any] | RunError:
        before = await self._beneath() if seconds is not None and not interrupt else frozenset()
        await self.process.send(job)
        waiting = asyncio.ensure_future(self._answer())
        late: RunError | None = None
        try:
            done, _ = await asyncio.wait([waiting], timeout=seconds)
            if not done and seconds is not None:
                late = RunError(ErrorCode.TIMED_OUT, f"It ran for more than {seconds:g} seconds.")
                await self._stop_job(before, interrupt, late, waiting)
            answer = await waiting
        finally:
            waiting.cancel()
        self.process.drain()
        return late or answer

    async def _answer(self) -> dict[str, Any] | RunError:
        try:
            while True:
                answer = await self.process.answer()
                if answer is None:
                    return self.process.reason or self._unexplained()
                if "kernel" not in answer:
                    return answer
                self._kernel_pid = answer["kernel"]
        except BadFrame as error:
            reason = RunError(ErrorCode.BAD_RESULT, f"The tool's answer could not be read: {error}.")
            self.process.end(reason)
            return reason

    async def _beneath(self) -> frozenset[int]:
        return frozenset(await asyncio.to_thread(processes.descendants, self.process.pid))

    async def _stop_job(
        self, before: frozenset[int], interrupt: bool, late: RunError, waiting: "asyncio.Future[Any]"
    ) -> None:
        """Kill what the job started; of the kernel, interrupt what it does. Where that does not help, all ends."""
        now = await asyncio.to_thread(processes.descendants, self.process.pid)
        if interrupt:
            targets = [pid for pid in now if processes.inner_pid(pid) == self._kernel_pid]
        else:
            targets = [pid for pid in now if pid not in before]
        for pid in targets:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT if interrupt else signal.SIGKILL)
        done, _ = await asyncio.wait([waiting], timeout=INTERRUPT_SECONDS)
        if not done:
            self.process.end(late)

    def _unexplained(self) -> RunError:
        """The runner went without the host's doing: the tool killed it, or the kernel did."""
        message = f"The sandbox ended by itself (exit code {self.process.exit_code()})."
        return RunError(ErrorCode.SANDBOX_FAILED, message)
