"""The channel to and from a sandbox: jobs, answers in frames, and what is printed."""

import asyncio
import contextlib
import json
import marshal
import os
import socket
from collections.abc import Callable
from typing import Any

from apps.capabilities.sandbox.base import ErrorCode, RunError

from .inside.frames import OWN
from .spawning import Spawned

PIECE = 65536
FRAME_SLACK = 65536
MOST_ANSWERS = 16
TOOLS_WORDS = ("result", "value", "code", "message")


class BadFrame(Exception):
    """The reply is not an answer."""


class Channel:
    """Belongs to one event loop. `end` ends the sandbox where it says what it must not."""

    def __init__(self, spawned: Spawned, frame_limit: int, end: Callable[[RunError], None]) -> None:
        self.on_output: Callable[[str, bytes], None] | None = None
        self._jobs = spawned.jobs
        self._named = {spawned.frames: "frames", spawned.stdout: "stdout", spawned.stderr: "stderr"}
        self._open = set(self._named)
        self._limit = frame_limit
        self._end = end
        self._buffer = bytearray()
        self._answers: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._jobs.setblocking(False)
        for descriptor in self._named:
            os.set_blocking(descriptor, False)
            asyncio.get_running_loop().add_reader(descriptor, self._read, descriptor)

    async def send(self, job: dict[str, Any]) -> None:
        data = marshal.dumps(job, 2)
        with contextlib.suppress(OSError):  # where it has ended the answer is that
            await asyncio.get_running_loop().sock_sendall(self._jobs, len(data).to_bytes(4, "big") + data)

    async def answer(self) -> bytes | None:
        """The next frame; None, again and again, where there will be none since the sandbox has ended."""
        data = await self._answers.get()
        if data is None:
            self._answers.put_nowait(None)
        return data

    async def received_listener(self) -> socket.socket | None:
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

    def drain(self) -> None:
        """Read what has been printed up to now."""
        for descriptor, name in self._named.items():
            while name != "frames" and self._read(descriptor):
                pass

    def close(self) -> None:
        loop = asyncio.get_running_loop()
        for descriptor in self._named:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        self._open.clear()
        self._jobs.close()

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
                self._answers.put_nowait(None)
        elif name == "frames":
            self._on_frames(data)
        elif self.on_output is not None:
            self.on_output(name, data)
        return bool(data)

    def _on_frames(self, data: bytes) -> None:
        self._buffer += data
        while len(self._buffer) >= 4:
            size = int.from_bytes(self._buffer[:4], "big")
            if size > self._limit:
                self._end(RunError(ErrorCode.BAD_RESULT, "The result is too large."))
                return
            if len(self._buffer) < 4 + size:
                return
            if self._answers.qsize() >= MOST_ANSWERS:
                self._end(RunError(ErrorCode.BAD_RESULT, "It answered what nobody asked."))
                return
            self._answers.put_nowait(bytes(self._buffer[4 : 4 + size]))
            del self._buffer[: 4 + size]


def parse_frame(data: bytes) -> dict[str, Any]:
    """Untrusted: its depth, its numbers and its encoding may be anything. Of what a tool's process said only what is a
    tool's to say is kept. Raises BadFrame."""
    try:
        frame = json.loads(data[1:], parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadFrame(str(error)[:200]) from None
    if not isinstance(frame, dict):
        raise BadFrame("it is no object")
    return frame if data[:1] == OWN else {name: frame[name] for name in TOOLS_WORDS if name in frame}


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
