"""Starting bwrap: its arguments, its pipes, and what the host keeps of them."""

import os
import socket
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from apps.capabilities.sandbox.base import Limits

from .arguments import START, Binding, python_command, sandbox_arguments
from .prepared import Prepared, command_as

PIPES = ("frames", "info", "stdout", "stderr")


@dataclass(slots=True)
class Spawned:
    """A bwrap that was started, and the host's ends: `jobs` is written, the descriptors are read."""

    popen: subprocess.Popen[bytes]
    jobs: socket.socket
    frames: int
    info: int
    stdout: int
    stderr: int


def spawn(prepared: Prepared, limits: Limits, bindings: Sequence[Binding], *, proxied: bool) -> Spawned:
    """Raises OSError. The sandbox dies with the thread that calls this."""
    arguments = "\0".join(sandbox_arguments(prepared, limits, bindings, proxied=proxied)).encode() + b"\0"
    with ExitStack() as ours, ExitStack() as theirs:
        jobs, jobs_inside = socket.socketpair()
        ours.callback(jobs.close)
        theirs.callback(jobs_inside.close)
        ends = {name: _pipe(ours, theirs) for name in PIPES}
        given = [_closed_by(theirs, pipe_with(data)) for data in (arguments, prepared.filter)]
        options = ["--args", str(given[0]), "--seccomp", str(given[1]), "--info-fd", str(ends["info"][1])]
        channel = [str(jobs_inside.fileno()), str(ends["frames"][1]), *(["listen"] if proxied else [])]
        python = [*python_command(prepared), "-c", START, *channel]
        command, identity = command_as(prepared, [prepared.bwrap, *options, *python])
        popen = subprocess.Popen(  # noqa: S603  that is what a sandbox is for
            command,
            stdin=subprocess.DEVNULL,
            stdout=ends["stdout"][1],
            stderr=ends["stderr"][1],
            pass_fds=[jobs_inside.fileno(), ends["frames"][1], ends["info"][1], *given],
            cwd="/",
            env={},
            start_new_session=True,
            **identity,
        )
        ours.pop_all()
    return Spawned(popen, jobs, *(ends[name][0] for name in PIPES))


def _pipe(ours: ExitStack, theirs: ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe()
    return _closed_by(ours, reading), _closed_by(theirs, writing)


def _closed_by(stack: ExitStack, descriptor: int) -> int:
    stack.callback(os.close, descriptor)
    return descriptor


def pipe_with(data: bytes) -> int:
    """A descriptor from which the data can be read. It is small enough for a pipe's buffer."""
    reading, writing = os.pipe()
    with open(writing, "wb") as file:
        file.write(data)
    return reading
