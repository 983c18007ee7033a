"""One running bwrap: its beginning, its jobs and answers in frames, what it prints, and its end."""

import asyncio
import contextlib
import json
import marshal
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from ..base import ErrorCode, Limits, RunError
from .inside.children import OWN
from .prepared import Prepared
from .processes import Watched, descendants, parent, stand_back, watchdog
from .spawning import Binding, Spawned, spawn

PIECE = 65536
FRAME_SLACK = 65536
MOST_FRAMES = 16
TOOLS_WORDS = ("result", "value", "code", "message")
START_SECONDS = 30.0
END_SECONDS = 10.0


class SandboxProcess:
    """It belongs to the event loop that started it. `on_output` is called with `stdout` or `stderr` and what is printed there."""

    pid: int
    _spawned: Spawned
    _watched: Watched
    _pidfd: int
    _named: Mapping[int, str]  # the descriptors that are read

    def __init__(self, prepared: Prepared, limits: Limits) -> None:
        self.prepared = prepared
        self.limits = limits
        self.reason: RunError | None = None  # why it was ended, where the host ended it
        self.listener: socket.socket | None = None  # of its proxy, where it has one
        self.kernel_pid = 0  # within its namespace, once it has a kernel
        self.frame_limit = 6 * limits.result_bytes + FRAME_SLACK
        self.on_output: Callable[[str, bytes], None] | None = None
        self._open: set[int] = set()
        self._buffer = bytearray()
        self._frames: asyncio.Queue[bytes | None] = asyncio.Queue()  # None at their end
        self.exited = asyncio.Event()

    # --- its beginning ---

    async def start(self, bindings: Sequence[Binding], *, proxied: bool) -> None:
        """Returns when the runner is ready for a job; from then on its time counts. Raises OSError; where bwrap fails, its reason is in the text."""
        loop = asyncio.get_running_loop()
        spawned = watchdog().call(partial(self._spawn, bindings, proxied))
        try:
            await asyncio.shield(asyncio.wrap_future(spawned))
        except asyncio.CancelledError:
            spawned.add_done_callback(lambda _: loop.call_soon_threadsafe(self._abandon, spawned))
            raise
        self._listen()
        try:
            async with asyncio.timeout(START_SECONDS):
                printed = bytearray()
                self.on_output = lambda _, data: printed.extend(data)
                if proxied:
                    self.listener = await self._received_listener()
                ready = self.listener is not None or not proxied
                if not ready or await self._frames.get() is None:
                    await self.wait()
                    self.drain()
                    message = printed.decode("utf-8", "replace").strip()
                    raise OSError(message or f"bwrap ended with {self._spawned.popen.returncode}")
                self.on_output = None
        except BaseException:
            self.release()
            raise
        # What had begun meanwhile; no code of a tool yet.
        self._watched.stands_back = stand_back(self.pid, self._watched.niceness)
        os.set_blocking(self._spawned.info, False)
        try:  # the namespace's first process, which takes all others with it
            self._watched.init = int(json.loads(os.read(self._spawned.info, 4096))["child-pid"])
        except (OSError, ValueError):
            self._watched.init = next(iter(descendants(self.pid)), 0)
        self._watched.deadline = loop.time() + self.limits.wall_seconds

    def _spawn(self, bindings: Sequence[Binding], proxied: bool) -> None:
        """In the watchdog's thread."""
        self._spawned = spawn(self.prepared, self.limits, bindings, proxied=proxied)
        self.pid = self._spawned.popen.pid
        niceness = watchdog().niceness
        self._watched = Watched(
            self.pid, self.limits, self.end, niceness, stand_back(self.pid, niceness)
        )
        watchdog().watched.add(self._watched)

    def _listen(self) -> None:
        loop, spawned = asyncio.get_running_loop(), self._spawned
        self._pidfd = os.pidfd_open(self.pid)
        loop.add_reader(self._pidfd, self._on_exit)
        self._named = {spawned.frames: "frames", spawned.stdout: "stdout", spawned.stderr: "stderr"}
        self._open.update(self._named)
        spawned.jobs.setblocking(False)
        for descriptor in self._named:
            os.set_blocking(descriptor, False)
            loop.add_reader(descriptor, self._read, descriptor)

    async def _received_listener(self) -> socket.socket | None:
        """The socket on which the sandbox's port 3128 is accepted, made in its network namespace. None where it ended."""
        readable = asyncio.Event()
        loop, jobs = asyncio.get_running_loop(), self._spawned.jobs
        loop.add_reader(jobs.fileno(), readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(jobs.fileno())
        _, descriptors, _, _ = socket.recv_fds(jobs, 1, 1)
        if not descriptors:
            return None
        listener = socket.socket(fileno=descriptors[0])
        listener.setblocking(False)
        return listener

    # --- its jobs and answers, and what it prints ---

    async def send(self, job: dict[str, Any]) -> None:
        data = marshal.dumps(job, 2)
        with contextlib.suppress(OSError):  # where it has ended the answer is that
            await asyncio.get_running_loop().sock_sendall(
                self._spawned.jobs, len(data).to_bytes(4, "big") + data
            )

    async def answer(self) -> dict[str, Any] | RunError:
        """The answer to a job; where there is none the sandbox has ended, or is ended here, and this says why.

        An answer is untrusted: its depth, its numbers and its encoding may be anything. Of what a tool's process said only
        what is a tool's to say is kept.
        """
        while (data := await self._frames.get()) is not None:
            try:
                frame = json.loads(data[1:], parse_constant=_refuse)
                if not isinstance(frame, dict):
                    raise ValueError("it is no object")
            except (ValueError, RecursionError) as error:
                message = f"The tool's answer could not be read: {str(error)[:200]}."
                unreadable = RunError(ErrorCode.BAD_RESULT, message)
                self.end(unreadable)
                return unreadable
            if data[:1] != OWN:
                return {name: frame[name] for name in TOOLS_WORDS if name in frame}
            if "kernel" not in frame:
                return frame
            self.kernel_pid = frame["kernel"]
        self._frames.put_nowait(None)  # for whoever asks again
        await self.wait()
        # Without the host's doing: the tool killed the runner, or the kernel did.
        message = f"The sandbox ended by itself (exit code {self._spawned.popen.returncode})."
        return self.reason or RunError(ErrorCode.SANDBOX_FAILED, message)

    def drain(self) -> None:
        """Read what has been printed up to now."""
        for descriptor, name in self._named.items():
            while name != "frames" and self._read(descriptor):
                pass

    def _read(self, descriptor: int) -> bool:
        """Whether there was something."""
        if descriptor not in self._open:
            return False
        try:
            data = os.read(descriptor, PIECE)
        except BlockingIOError:
            return False
        name = self._named[descriptor]
        if not data:
            asyncio.get_running_loop().remove_reader(descriptor)
            self._open.remove(descriptor)
            if name == "frames":
                self._frames.put_nowait(None)
        elif name == "frames":
            self._on_frames(data)
        elif self.on_output is not None:
            self.on_output(name, data)
        return bool(data)

    def _on_frames(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 4:
            size = int.from_bytes(self._buffer[:4], "big")
            if size > self.frame_limit:
                self.end(RunError(ErrorCode.BAD_RESULT, "The result is too large."))
                return
            if len(self._buffer) < 4 + size:
                return
            if self._frames.qsize() >= MOST_FRAMES:
                self.end(RunError(ErrorCode.BAD_RESULT, "It answered what nobody asked."))
                return
            self._frames.put_nowait(bytes(self._buffer[4 : 4 + size]))
            del self._buffer[: 4 + size]

    # --- its end ---

    def end(self, reason: RunError) -> None:
        """Kill everything in it, from any thread. The first reason stays.

        bwrap itself ends after the namespace's first process, for which it waits: killed together with it, it would leave
        a zombie to this machine's first process, and that of a container often waits for nobody.
        """
        if self.reason is None:
            self.reason = reason
        if self._spawned.popen.returncode is not None:
            return
        first = self._watched.init
        ours = parent(first) == self.pid  # the number of one that has ended may be anybody's by now
        for pid in [first] if ours else [*descendants(self.pid), self.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def wait(self) -> None:
        """Until it has ended. It is ended if that takes long after its last answer."""
        try:
            async with asyncio.timeout(END_SECONDS):
                await self.exited.wait()
        except TimeoutError:
            self.end(RunError(ErrorCode.SANDBOX_FAILED, "The sandbox did not end by itself."))
            self._spawned.popen.send_signal(signal.SIGKILL)
            await self.exited.wait()

    def release(self) -> None:
        """Kill what still runs and give everything back, without waiting."""
        self.end(RunError(ErrorCode.CANCELLED, "The sandbox was closed."))
        watchdog().watched.discard(self._watched)
        for descriptor in self._named:
            asyncio.get_running_loop().remove_reader(descriptor)
            os.close(descriptor)
        self._open.clear()
        self._spawned.jobs.close()
        os.close(self._spawned.info)
        if self.listener is not None:
            self.listener.close()

    def _on_exit(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._spawned.popen.wait()
        self.exited.set()

    def _abandon(self, spawned: "Future[None]") -> None:
        """It was cancelled while it was being started, and has been started all the same."""
        if spawned.exception() is None:
            self._listen()
            self.release()


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
