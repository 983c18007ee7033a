"""A sandbox of bubblewrap: the calls that the protocol offers, each a job for the runner within, whose answers are read here."""

import asyncio
import contextlib
import logging
import os
import re
import signal
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from time import monotonic
from typing import Any

from apps.capabilities.egress import EgressProxy
from apps.core.errors import InvalidInput
from apps.core.text import storable

from ..base import (
    CodeResult,
    CommandResult,
    ErrorCode,
    Limits,
    Output,
    Progress,
    RunError,
    RunResult,
    SandboxGone,
    SandboxUnavailable,
    emit,
    writable_path,
)
from .prepared import Prepared
from .process import SandboxProcess
from .processes import descendants, inner_pid
from .spawning import Binding

logger = logging.getLogger(__name__)

ADDRESS_SPACE_BYTES = 4_000_000_000
OPEN_FILES = 128
MOST_PROCESSES = 4096
COUNTED_PER_NAMESPACE = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (5, 14)
"""Before that the kernel counts all of a user's processes, also those outside: there the watchdog alone counts."""
VALUE_CHARS = 20_000
VALUE_LIMIT = VALUE_CHARS + 100
INTERRUPT_SECONDS = 2.0


class BubblewrapSandbox:
    def __init__(
        self,
        prepared: Prepared,
        limits: Limits,
        progress: Progress | None,
        proxy: EgressProxy | None,
    ) -> None:
        self.process = SandboxProcess(prepared, limits)
        self.held: ExitStack | None = None  # given back when it is closed
        self._progress = progress
        self._proxy = proxy
        self._busy = asyncio.Lock()
        self._closed = False

    async def start(self, bindings: Sequence[Binding], env: Mapping[str, str], **changed: int) -> None:
        """Raises SandboxUnavailable. `changed` are limits that the runner sets in place of the usual ones."""
        process, limits = self.process, self.process.limits
        try:
            await process.start(bindings, proxied=self._proxy is not None)
        except OSError as error:
            logger.warning("a sandbox did not start: %s", error)
            raise SandboxUnavailable(f"The sandbox did not start: {error}") from error
        set_inside = {
            "address_space": ADDRESS_SPACE_BYTES,
            "file": limits.file_bytes,
            "open_files": OPEN_FILES,
            "processes": limits.processes if COUNTED_PER_NAMESPACE else MOST_PROCESSES,
            "cpu": limits.cpu_seconds,
            "result": limits.result_bytes,
            "frame": process.frame_limit,
            "value": VALUE_CHARS,
        }
        try:
            if self._proxy is not None and process.listener is not None:
                await self._proxy.serve(process.listener)
            await process.send({"op": "begin", "limits": set_inside | changed, "env": dict(env)})
        except BaseException:
            await asyncio.shield(asyncio.ensure_future(self.close()))
            raise

    # --- what the protocol offers ---

    async def write_file(self, path: str, content: str | bytes) -> None:
        data = content.encode("utf-8", "replace") if isinstance(content, str) else content
        limit = self.process.limits.file_bytes
        if len(data) > limit:
            message = f"{path} has {len(data):,} bytes; at most {limit:,} fit."
            raise InvalidInput(message, field="content")
        answer, output = await self._call({"op": "write", "path": writable_path(path), "data": data})
        if output.error is not None:
            raise SandboxGone(output.error)
        if refused := answer.get("refused"):
            raise InvalidInput(answer_text(refused), field="path")

    async def run_code(self, code: str, *, seconds: float | None = None) -> CodeResult:
        job = {"op": "code", "code": code.encode("utf-8", "replace")}
        answer, output = await self._call(job, seconds, interrupt=True)
        error = output.error or answer_error(answer)
        return CodeResult(value=answer_text(answer.get("value")), error=error, **output.report())

    async def run_command(self, command: str, *, seconds: float | None = None) -> CommandResult:
        if "\x00" in command:
            raise InvalidInput("A command has no NUL characters.", field="command")
        return await self.run_program(["/bin/sh", "-c", command], seconds=seconds)

    async def run_program(self, argv: list[str], *, seconds: float | None = None) -> CommandResult:
        answer, output = await self._call({"op": "command", "argv": argv}, seconds)
        code = -signal.SIGKILL if output.error else answer.get("exit")
        return CommandResult(
            exit_code=code if isinstance(code, int) else -1, error=output.error, **output.report()
        )

    async def run_capability(self, files: Mapping[str, str], args: dict[str, Any]) -> RunResult:
        given = {writable_path(path): text.encode("utf-8", "replace") for path, text in files.items()}
        await emit(self._progress, {"status": "running"})
        answer, output = await self._call({"op": "capability", "files": given, "args": args})
        error = output.error or answer_error(answer)
        result = answer.get("result")
        if error is None and not isinstance(result, str):
            error = RunError(ErrorCode.BAD_RESULT, "The tool's answer could not be read.")
        return RunResult(
            result=storable(result) if error is None and isinstance(result, str) else None,
            error=error,
            hosts_used=tuple(sorted(self._proxy.used)) if self._proxy else (),
            **output.report(),
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
        if self.held is not None:
            await asyncio.to_thread(self.held.close)

    # --- how ---

    async def _call(
        self, job: dict[str, Any], seconds: float | None = None, *, interrupt: bool = False
    ) -> tuple[dict[str, Any], Output]:
        """The answer to a job, and what was printed meanwhile; where there is no answer it is empty, and the output's error
        says why. One call at a time; cancelling it ends the sandbox."""
        process, late = self.process, None
        async with self._busy:
            if self._closed or process.reason or process.exited.is_set():
                ended = RunError(ErrorCode.SANDBOX_FAILED, "The sandbox has ended.")
                raise SandboxGone(process.reason or ended)
            output = Output(process.limits, self._progress, process.end)
            process.on_output = output.feed
            waiting = asyncio.ensure_future(process.answer())
            async with output.emitting():
                try:
                    timed = seconds is not None and not interrupt
                    before = await asyncio.to_thread(descendants, process.pid) if timed else []
                    await process.send(job)
                    done, _ = await asyncio.wait([waiting], timeout=seconds)
                    if not done and seconds is not None:
                        message = f"It ran for more than {seconds:g} seconds."
                        late = RunError(ErrorCode.TIMED_OUT, message)
                        await self._stop_job(before, interrupt, late, waiting)
                    answer = await waiting
                    process.drain()
                except asyncio.CancelledError:
                    process.end(RunError(ErrorCode.CANCELLED, "The run was stopped."))
                    raise
                finally:
                    waiting.cancel()
                    process.on_output = None
        output.error = late or (answer if isinstance(answer, RunError) else None)
        return {} if late or isinstance(answer, RunError) else answer, output

    async def _stop_job(
        self, before: list[int], interrupt: bool, late: RunError, waiting: "asyncio.Future[Any]"
    ) -> None:
        """Kill what the job started; of the kernel, interrupt what it does. Where that does not help, all ends."""
        signalled: set[int] = set()
        until = monotonic() + INTERRUPT_SECONDS
        # Again until a look finds nothing new: a process may start another between the look and its end.
        while monotonic() < until:
            new = set(await asyncio.to_thread(descendants, self.process.pid)) - signalled
            new = (
                {pid for pid in new if inner_pid(pid) == self.process.kernel_pid}
                if interrupt
                else new.difference(before)
            )
            if not new:
                break
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGINT if interrupt else signal.SIGKILL)
            signalled |= new
        done, _ = await asyncio.wait([waiting], timeout=INTERRUPT_SECONDS)
        if not done:
            self.process.end(late)


def answer_error(answer: dict[str, Any]) -> RunError | None:
    """The error the runner or the tool reports. Nothing in it is believed beyond its being text."""
    if "refused" in answer:
        return RunError(ErrorCode.SANDBOX_FAILED, answer_text(answer["refused"]))
    if "exit" in answer:
        return _ended_without_answer(answer["exit"])
    match answer.get("code"):
        case None:
            return None
        case "interrupted":
            return RunError(ErrorCode.RAISED, answer_text(answer.get("message")))
        case "out_of_memory" | "raised" | "bad_result" as code:
            return RunError(ErrorCode(code), answer_text(answer.get("message")))
    return RunError(ErrorCode.BAD_RESULT, "The tool's answer could not be read.")


def _ended_without_answer(code: object) -> RunError:
    if code == -signal.SIGXCPU:
        return RunError(ErrorCode.TIMED_OUT, "It used more processor time than it may.")
    if isinstance(code, int) and code < 0:
        names = {item.value: item.name for item in signal.Signals}
        what = f"was ended by {names.get(-code, f'signal {-code}')}"
    else:
        what = f"ended with exit code {code}"
    return RunError(ErrorCode.RAISED, f"The tool's process {what} before run(args) returned.")


def answer_text(value: object) -> str:
    return str(storable(value))[:VALUE_LIMIT] if isinstance(value, str) else ""
