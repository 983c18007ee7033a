"""The first process within a sandbox: it takes jobs from the host and never runs a tool's code itself. The kernel drops
signals that it does not expect, so that a tool cannot end it, and `set_dumpable` keeps tools from looking into it.

Usage: JOBS FRAMES [listen]. JOBS is a stream socket: marshalled jobs come in, each after its length in four bytes, and with
`listen` the listening socket of the proxy goes out. FRAMES is a pipe for the answers. Every job runs in a child that
answers over a pipe of its own: what a tool prints is never taken for an answer.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _socket
import marshal
import os
import sys

from .answers import write_all
from .children import (
    HOME,
    await_frame,
    ended,
    execute,
    fork,
    in_child,
    kill,
    pass_on,
    received,
    run_tool,
    send,
    set_dumpable,
)

TYPE_CHECKING = False  # importing typing takes longer than all the rest
if TYPE_CHECKING:
    from typing import Any

    from .kernel import Kernel

PROXY_PORT = 3128


def main() -> None:
    set_dumpable(False)
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # Python's own handler would end it
    jobs = _socket.socket(fileno=int(sys.argv[1]))
    frames = int(sys.argv[2])
    for descriptor in (jobs.fileno(), frames):
        os.set_inheritable(descriptor, False)
    if sys.argv[3:] == ["listen"]:
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", PROXY_PORT))
        listener.listen(64)
        number = listener.fileno().to_bytes(4, sys.byteorder)
        jobs.sendmsg([b"L"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, number)])
        listener.close()  # the host accepts on it; nothing in here keeps it
    send(frames, {"ready": True})
    Runner(jobs, frames).serve()


class Runner:
    def __init__(self, jobs: _socket.socket, frames: int) -> None:
        self.jobs = jobs
        self.frames = frames
        self.limits: dict[str, int] = {}
        self.kernel: Kernel | None = None

    def serve(self) -> None:
        actions = {
            "begin": self.begin,
            "write": self.write,
            "code": self.code,
            "command": self.command,
            "capability": self.capability,
        }
        while True:
            size = int.from_bytes(received(self.jobs, 4), "big")
            job = marshal.loads(received(self.jobs, size))  # noqa: S302  from the host, which is trusted in here
            actions[job["op"]](job)

    def begin(self, job: dict[str, Any]) -> None:
        """No answer: a job follows. From now on it leads a group of its own, so that a tool that signals its group reaches
        nothing outside."""
        os.setpgid(0, 0)
        self.limits = job["limits"]
        os.environ.update(job["env"])
        os.chdir(HOME)

    def write(self, job: dict[str, Any]) -> None:
        send(self.frames, self.written({job["path"]: job["data"]}))

    def code(self, job: dict[str, Any]) -> None:
        if self.kernel is None:
            from .kernel import Kernel

            self.kernel = Kernel([self.jobs.fileno(), self.frames], self.limits)
            send(self.frames, {"kernel": self.kernel.pid})
        answer = self.kernel.run(job["code"])
        if isinstance(answer, int):
            self.kernel = None
            send(self.frames, {"exit": answer})
        else:
            pass_on(self.frames, answer)

    def command(self, job: dict[str, Any]) -> None:
        pid = fork()
        if pid == 0:
            in_child(self.own_descriptors(), self.limits, lambda: execute(job["argv"]))
        send(self.frames, {"exit": ended(pid, wait=True)})

    def capability(self, job: dict[str, Any]) -> None:
        refused = self.written(job["files"])
        if refused:
            send(self.frames, refused)
            return
        reading, writing = os.pipe()
        pid = fork()
        if pid == 0:
            closed = [*self.own_descriptors(), reading]
            in_child(closed, self.limits, lambda: run_tool(job["args"], writing, self.limits["result"]))
        os.close(writing)
        answer = await_frame(reading, pid, self.limits["frame"])
        os.close(reading)
        if isinstance(answer, int):
            send(self.frames, {"exit": answer})
            return
        kill(pid)  # it has answered; threads it left running would keep it
        pass_on(self.frames, answer)

    def written(self, files: dict[str, bytes]) -> dict[str, Any]:
        """Empty, or what went wrong."""
        for path, data in files.items():
            try:
                write_file(path, data)
            except OSError as error:
                return {"refused": f"{path} could not be written: {error.strerror}."}
        return {}

    def own_descriptors(self) -> list[int]:
        kernel = [] if self.kernel is None else [self.kernel.channel.fileno()]
        return [self.jobs.fileno(), self.frames, *kernel]


def write_file(path: str, data: bytes) -> None:
    """Beside its place and then renamed onto it, so that a link or a pipe put there before is replaced, not followed."""
    path = os.path.join(HOME, path)
    folder = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    part = f"{folder}/.part-{os.urandom(8).hex()}"
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    try:
        write_all(descriptor, data)
        os.rename(part, path)
    except OSError:
        os.unlink(part)
        raise
    finally:
        os.close(descriptor)
