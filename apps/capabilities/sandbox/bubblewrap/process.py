"""One running bwrap: its pipes, its jobs and answers, and its end."""

import asyncio
import contextlib
import json
import logging
import marshal
import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from apps.capabilities.sandbox.base import ErrorCode, Limits, RunError

from . import processes
from .arguments import START, Binding, python_command, sandbox_arguments
from .inside.frames import OWN
from .niceness import sandbox_niceness, stand_back
from .prepared import Prepared, command_as
from .watchdog import Watched, watchdog

logger = logging.getLogger(__name__)

PIECE = 65536
START_SECONDS = 30.0
END_SECONDS = 10.0
FRAME_SLACK = 65536
MOST_ANSWERS = 16
TOOLS_WORDS = ("result", "value", "code", "message")


class BadFrame(Exception):
    """What came back is no answer."""


class SandboxProcess:
    """Belongs to the event loop that started it. `reason` says why it was ended, where the host ended it."""

    def __init__(self, prepared: Prepared, limits: Limits) -> None:
        self.prepared = prepared
        self.limits = limits
        self.reason: RunError | None = None
        self.on_output: Callable[[str, bytes], None] | None = None
        self.listener: socket.socket | None = None
        self.frame_limit = 6 * limits.result_bytes + FRAME_SLACK
        self._jobs: socket.socket
        self._popen: subprocess.Popen[bytes]
        self._watched: Watched
        self._readers: dict[int, str] = {}
        self._info = self._frames = self._stdout = self._stderr = self._pidfd = -1
        self._buffer = bytearray()
        self._answers: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._exited = asyncio.Event()

    @property
    def alive(self) -> bool:
        return not self._exited.is_set() and self.reason is None

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def peak_bytes(self) -> int:
        return self._watched.peak_bytes

    # --- its beginning ---

    async def start(self, bindings: Sequence[Binding], *, proxied: bool) -> None:
        """Returns when the runner is ready for a job. Raises OSError; where bwrap fails, its reason is in the text."""
        loop = asyncio.get_running_loop()
        outcome = watchdog().call(lambda: self._spawn(bindings, proxied))
        try:
            await asyncio.shield(asyncio.wrap_future(outcome))
        except asyncio.CancelledError:
            outcome.add_done_callback(lambda _: loop.call_soon_threadsafe(self._abandon, outcome))
            raise
        self._listen_to_pipes()
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._become_ready(proxied)
        except BaseException:
            self.release()
            raise
        self._stand_back()  # what had begun meanwhile; no code of a tool yet
        self._watched.init = self._init()

    async def _become_ready(self, proxied: bool) -> None:
        said = bytearray()
        self.on_output = lambda _, data: said.extend(data)
        if proxied:
            self.listener = await self._received_listener()
        ready = self.listener is not None or not proxied
        if not ready or await self._answers.get() is None:
            await self.wait()
            self.drain()
            words = said.decode("utf-8", "replace").strip()
            raise OSError(words or f"bwrap ended with {self._popen.returncode}")
        self.on_output = None

    def _spawn(self, bindings: Sequence[Binding], proxied: bool) -> None:
        """In the watchdog's thread."""
        self._jobs, jobs_inside = socket.socketpair()
        pipes = {name: os.pipe() for name in ("frames", "info", "stdout", "stderr")}
        arguments = sandbox_arguments(self.prepared, self.limits, bindings, proxied=proxied)
        given = [pipe_with("\0".join(arguments).encode() + b"\0"), pipe_with(self.prepared.filter)]
        inside = [jobs_inside.fileno(), *(writing for _, writing in pipes.values()), *given]
        options = ["--args", str(given[0]), "--seccomp", str(given[1]), "--info-fd", str(pipes["info"][1])]
        listen = ["listen"] if proxied else []
        channel = [str(jobs_inside.fileno()), str(pipes["frames"][1]), *listen]
        python = [*python_command(self.prepared), "-c", START, *channel]
        command, identity = command_as(self.prepared, [self.prepared.bwrap, *options, *python])
        try:
            self._popen = subprocess.Popen(  # noqa: S603  that is what a sandbox is for
                command,
                stdin=subprocess.DEVNULL,
                stdout=pipes["stdout"][1],
                stderr=pipes["stderr"][1],
                pass_fds=[jobs_inside.fileno(), pipes["frames"][1], pipes["info"][1], *given],
                cwd="/",
                env={},
                start_new_session=True,
                **identity,
            )
        except BaseException:
            for reading, _ in pipes.values():
                os.close(reading)
            self._jobs.close()
            raise
        finally:
            jobs_inside.detach()
            for descriptor in inside:
                os.close(descriptor)
        self._frames, self._info, self._stdout, self._stderr = (reading for reading, _ in pipes.values())
        self._watched = Watched(self._popen.pid, self.limits, self.end, sandbox_niceness())
        self._stand_back()
        watchdog().watch(self._watched)

    def _stand_back(self) -> None:
        self._watched.stands_back = stand_back(self._popen.pid, self._watched.niceness)

    def _listen_to_pipes(self) -> None:
        loop = asyncio.get_running_loop()
        self._jobs.setblocking(False)
        self._pidfd = os.pidfd_open(self._popen.pid)
        loop.add_reader(self._pidfd, self._on_exit)
        for descriptor, name in (
            (self._frames, "frames"),
            (self._stdout, "stdout"),
            (self._stderr, "stderr"),
        ):
            os.set_blocking(descriptor, False)
            self._readers[descriptor] = name
            loop.add_reader(descriptor, self._read, descriptor)

    async def _received_listener(self) -> socket.socket | None:
        """The socket on which the sandbox's port 3128 is accepted, made in its network namespace. None where it ended."""
        readable = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._jobs.fileno(), readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._jobs.fileno())
        _, descriptors, _, _ = socket.recv_fds(self._jobs, 1, 1)
        if not descriptors:
            return None
        listener = socket.socket(fileno=descriptors[0])
        listener.setblocking(False)
        return listener

    def _init(self) -> int:
        """The namespace's first process, which takes all others with it."""
        with contextlib.suppress(OSError, ValueError):
            if select.select([self._info], [], [], 0)[0]:
                return int(json.loads(os.read(self._info, 4096))["child-pid"])
        return next(iter(processes.descendants(self._popen.pid)), 0)

    # --- jobs and answers ---

    def run_for(self, seconds: float) -> None:
        """It is ended so many seconds from now."""
        self._watched.deadline = asyncio.get_running_loop().time() + seconds

    async def send(self, job: dict[str, Any]) -> None:
        data = marshal.dumps(job, 2)
        with contextlib.suppress(OSError):  # where it has ended the answer is that
            await asyncio.get_running_loop().sock_sendall(self._jobs, len(data).to_bytes(4, "big") + data)

    async def answer(self) -> dict[str, Any] | None:
        """The next answer; None where there will be none, since the sandbox has ended. Raises BadFrame."""
        data = await self._answers.get()
        if data is None:
            self._answers.put_nowait(None)
            await self.wait()
            return None
        return parse_frame(data)

    def drain(self) -> None:
        """Read what has been printed up to now."""
        for descriptor in (self._stdout, self._stderr):
            while descriptor in self._readers and select.select([descriptor], [], [], 0)[0]:
                self._read(descriptor)

    def _read(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, PIECE)
        except BlockingIOError:
            return
        name = self._readers[descriptor]
        if not data:
            asyncio.get_running_loop().remove_reader(descriptor)
            del self._readers[descriptor]
            if name == "frames":
                self._answers.put_nowait(None)
        elif name == "frames":
            self._on_frames(data)
        elif self.on_output is not None:
            self.on_output(name, data)

    def _on_frames(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 4:
            size = int.from_bytes(self._buffer[:4], "big")
            if size > self.frame_limit:
                self.end(RunError(ErrorCode.BAD_RESULT, "The result is too large."))
                return
            if len(self._buffer) < 4 + size:
                return
            if self._answers.qsize() >= MOST_ANSWERS:
                self.end(RunError(ErrorCode.BAD_RESULT, "It answered what nobody asked."))
                return
            self._answers.put_nowait(bytes(self._buffer[4 : 4 + size]))
            del self._buffer[: 4 + size]

    # --- its end ---

    def end(self, reason: RunError) -> None:
        """Kill everything in it, from any thread. The first reason stays.

        bwrap itself ends after the namespace's first process, for which it waits: killed together with it, it would leave
        a zombie to this machine's first process, and that of a container often waits for nobody.
        """
        if self.reason is None:
            self.reason = reason
        if self._popen.returncode is not None:
            return
        first = self._watched.init
        for pid in [first] if first else [*processes.descendants(self._popen.pid), self._popen.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def wait(self) -> None:
        """Until it has ended. It is ended if that takes long after its last answer."""
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._exited.wait()
        except TimeoutError:
            self.end(RunError(ErrorCode.SANDBOX_FAILED, "The sandbox did not end by itself."))
            self._popen.send_signal(signal.SIGKILL)
            await self._exited.wait()

    def exit_code(self) -> int | None:
        return self._popen.returncode

    def release(self) -> None:
        """Kill what still runs and give everything back, without waiting."""
        self.end(RunError(ErrorCode.CANCELLED, "The sandbox was closed."))
        watchdog().unwatch(self._watched)
        loop = asyncio.get_running_loop()
        for descriptor in (self._frames, self._stdout, self._stderr):
            loop.remove_reader(descriptor)
            os.close(descriptor)
        self._readers.clear()
        os.close(self._info)
        self._jobs.close()
        if self.listener is not None:
            self.listener.close()

    def _on_exit(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._popen.wait()
        self._exited.set()

    def _abandon(self, outcome: Any) -> None:
        """It was cancelled while it was being started, and has been started all the same."""
        if outcome.exception() is None:
            self._listen_to_pipes()
            self.release()


def parse_frame(data: bytes) -> dict[str, Any]:
    """Untrusted: its depth, its numbers and its encoding may be anything. Of what a tool's process said only what is a
    tool's to say is kept."""
    try:
        frame = json.loads(data[1:], parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadFrame(str(error)[:200]) from None
    if not isinstance(frame, dict):
        raise BadFrame("it is no object")
    return frame if data[:1] == OWN else {name: frame[name] for name in TOOLS_WORDS if name in frame}


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def pipe_with(data: bytes) -> int:
    """A descriptor from which the data can be read. It is small enough for a pipe's buffer."""
    reading, writing = os.pipe()
    with open(writing, "wb") as file:
        file.write(data)
    return reading
