"""One running bwrap: its beginning, its jobs and answers, and its end."""

import asyncio
import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from apps.capabilities.sandbox.base import ErrorCode, Limits, RunError

from . import processes
from .arguments import Binding
from .channel import FRAME_SLACK, Channel, parse_frame
from .niceness import sandbox_niceness, stand_back
from .prepared import Prepared
from .spawning import Spawned, spawn
from .watchdog import Watched, watchdog

START_SECONDS = 30.0
END_SECONDS = 10.0


class SandboxProcess:
    """Belongs to the event loop that started it. `reason` says why it was ended, where the host ended it; `listener` is the
    socket of its proxy, where it has one."""

    def __init__(self, prepared: Prepared, limits: Limits) -> None:
        self.prepared = prepared
        self.limits = limits
        self.reason: RunError | None = None
        self.listener: socket.socket | None = None
        self.frame_limit = 6 * limits.result_bytes + FRAME_SLACK
        self._spawned: Spawned
        self._channel: Channel
        self._watched: Watched
        self._pidfd = -1
        self._exited = asyncio.Event()

    @property
    def alive(self) -> bool:
        return not self._exited.is_set() and self.reason is None

    @property
    def pid(self) -> int:
        return self._spawned.popen.pid

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
        self._listen()
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._become_ready(proxied)
        except BaseException:
            self.release()
            raise
        self._stand_back()  # what had begun meanwhile; no code of a tool yet
        self._watched.init = self._init()

    def _spawn(self, bindings: Sequence[Binding], proxied: bool) -> None:
        """In the watchdog's thread."""
        self._spawned = spawn(self.prepared, self.limits, bindings, proxied=proxied)
        self._watched = Watched(self.pid, self.limits, self.end, sandbox_niceness())
        self._stand_back()
        watchdog().watch(self._watched)

    def _stand_back(self) -> None:
        self._watched.stands_back = stand_back(self.pid, self._watched.niceness)

    def _listen(self) -> None:
        self._pidfd = os.pidfd_open(self.pid)
        asyncio.get_running_loop().add_reader(self._pidfd, self._on_exit)
        self._channel = Channel(self._spawned, self.frame_limit, self.end)

    async def _become_ready(self, proxied: bool) -> None:
        said = bytearray()
        self.take_output(lambda _, data: said.extend(data))
        if proxied:
            self.listener = await self._channel.received_listener()
        ready = self.listener is not None or not proxied
        if not ready or await self._channel.answer() is None:
            await self.wait()
            self.drain()
            words = said.decode("utf-8", "replace").strip()
            raise OSError(words or f"bwrap ended with {self.exit_code()}")
        self.take_output(None)

    def _init(self) -> int:
        """The namespace's first process, which takes all others with it."""
        os.set_blocking(self._spawned.info, False)
        with contextlib.suppress(OSError, ValueError):
            return int(json.loads(os.read(self._spawned.info, 4096))["child-pid"])
        return next(iter(processes.descendants(self.pid)), 0)

    # --- jobs and answers ---

    def run_for(self, seconds: float) -> None:
        """It is ended so many seconds from now."""
        self._watched.deadline = asyncio.get_running_loop().time() + seconds

    def take_output(self, taker: Callable[[str, bytes], None] | None) -> None:
        """Tells `taker` of output from now on, with `stdout` or `stderr`; nobody for None."""
        self._channel.on_output = taker

    def drain(self) -> None:
        """Read what has been printed up to now."""
        self._channel.drain()

    async def send(self, job: dict[str, Any]) -> None:
        await self._channel.send(job)

    async def answer(self) -> dict[str, Any] | None:
        """The next answer; None where there will be none, since the sandbox has ended. Raises BadFrame."""
        data = await self._channel.answer()
        if data is None:
            await self.wait()
            return None
        return parse_frame(data)

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
        for pid in [first] if first else [*processes.descendants(self.pid), self.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def wait(self) -> None:
        """Until it has ended. It is ended if that takes long after its last answer."""
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._exited.wait()
        except TimeoutError:
            self.end(RunError(ErrorCode.SANDBOX_FAILED, "The sandbox did not end by itself."))
            self._spawned.popen.send_signal(signal.SIGKILL)
            await self._exited.wait()

    def exit_code(self) -> int | None:
        return self._spawned.popen.returncode

    def release(self) -> None:
        """Kill what still runs and give everything back, without waiting."""
        self.end(RunError(ErrorCode.CANCELLED, "The sandbox was closed."))
        watchdog().unwatch(self._watched)
        self._channel.close()
        os.close(self._spawned.info)
        if self.listener is not None:
            self.listener.close()

    def _on_exit(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._spawned.popen.wait()
        self._exited.set()

    def _abandon(self, outcome: "Future[None]") -> None:
        """It was cancelled while it was being started, and has been started all the same."""
        if outcome.exception() is None:
            self._listen()
            self.release()
