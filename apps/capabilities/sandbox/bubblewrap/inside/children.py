"""Processes in which jobs run: limited, without the descriptors that lead to the host, and answering in frames, which are
JSON objects, each after its length in four bytes; written without `json`, whose import takes as long as the interpreter's
own start.

The runner is the first process of its namespace, so whatever loses its parent becomes its child too, and is laid to rest
here: a zombie counts as a process.
"""

from __future__ import annotations

import _json
import gc
import os
import resource
import select
import sys

from .answers import checked, failure, flush, write_all

TYPE_CHECKING = False  # importing typing takes longer than all the rest
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable
    from typing import Any

HOME = "/home/user"
LAYER = "/opt/deps"
OWN_FOLDER = "/opt/izzy"
OWN_PACKAGE = __name__.partition(".")[0]
PIECE = 65536
RECEIVED_PIECE = 1_000_000
OWN, OF_A_TOOL = b"r", b"t"
POLL_SECONDS = 0.01
TOO_LONG = -9
PR_SET_DUMPABLE = 4

_own: set[int] = set()
_ended: dict[int, int] = {}
"""Exit codes of own children that ended while another was waited for."""


def fork() -> int:
    pid = os.fork()
    if pid:
        _own.add(pid)
    return pid


def ended(pid: int, *, wait: bool) -> int | None:
    """The exit code of an own child, as subprocess has it (-N where signal N ended it); None where it still runs. Given out
    once: the number may then be another's."""
    while pid not in _ended:
        found, status = os.waitpid(-1, 0 if wait else os.WNOHANG)
        if not found:
            return None
        if found in _own:
            _ended[found] = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    _own.remove(pid)
    return _ended.pop(pid)


def kill(pid: int) -> None:
    """End an own child. One whose end was seen is gone already."""
    if pid in _own:
        os.kill(pid, 9)
        ended(pid, wait=True)


def send(descriptor: int, frame: dict[str, Any]) -> None:
    """To the host, in the runner's own words."""
    write_all(descriptor, packed(OWN + frame_bytes(frame)))


def pass_on(descriptor: int, frame: bytes) -> None:
    """To the host, as what a tool's process said: it must not be able to speak for the runner."""
    write_all(descriptor, packed(OF_A_TOOL + frame))


def frame_bytes(frame: dict[str, Any]) -> bytes:
    """A lone surrogate becomes a question mark."""
    return to_json(frame).encode("utf-8", "replace")


def packed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def received(channel: _socket.socket, size: int) -> bytes:
    """This process ends where the other end of the channel is gone."""
    parts = []
    while size:
        part = channel.recv(min(size, RECEIVED_PIECE))
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def to_json(value: object) -> str:
    """Of text, whole numbers, truth values, None and dicts of them."""
    if isinstance(value, str):
        return str(_json.encode_basestring(value))
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{to_json(key)}:{to_json(item)}" for key, item in value.items()) + "}"
    raise TypeError(type(value).__name__)


def await_frame(reading: int, pid: int, limit: int) -> bytes | int:
    """The child's frame, or its exit code where it ended without one. What it left behind may hold the pipe open: so the
    child is watched, not the pipe's end."""
    data = bytearray()
    exited = None
    while True:
        wait = POLL_SECONDS if exited is None else 0
        part = os.read(reading, PIECE) if select.select([reading], [], [], wait)[0] else None
        if part:
            data += part
            size = int.from_bytes(data[:4], "big")
            if len(data) >= 4 + size and len(data) >= 4:
                return bytes(data[4 : 4 + size])
            if size > limit and len(data) >= 4:
                kill(pid)
                return TOO_LONG
        elif exited is not None:
            return exited
        else:
            exited = ended(pid, wait=part is not None)


def set_dumpable(value: bool) -> None:
    """Whether processes of the same user may look into this one (`/proc/PID/mem`, `/proc/PID/fd`, ptrace): tools have the
    runner's user. Children begin with what their parent has; starting another program permits it again.

    By ctypes' inner module, since importing ctypes itself takes a third of a sandbox's start. A Python without it leaves
    the door open: what is behind it is in the same sandbox.
    """
    try:
        import _ctypes
    except ImportError:
        return
    own = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # the program itself
    _ctypes.call_function(_ctypes.dlsym(own, "prctl"), (PR_SET_DUMPABLE, int(value), 0, 0, 0))


def in_child(descriptors: list[int], limits: dict[str, int], work: Callable[[], None]) -> None:
    """The rest of this process's life. It closes the descriptors, which lead to the host, before the work."""
    status = 1
    try:
        for descriptor in descriptors:
            os.close(descriptor)
        for name, value in (
            ("RLIMIT_AS", limits["address_space"]),
            ("RLIMIT_FSIZE", limits["file"]),
            ("RLIMIT_NOFILE", limits["open_files"]),
            ("RLIMIT_NPROC", limits["processes"]),
            ("RLIMIT_CORE", 0),
            ("RLIMIT_MSGQUEUE", 0),
            ("RLIMIT_MEMLOCK", 65536),
        ):
            resource.setrlimit(getattr(resource, name), (value, value))
        resource.setrlimit(resource.RLIMIT_CPU, (limits["cpu"], limits["cpu"] + 1))
        work()
        status = 0
    finally:
        os._exit(status)


def execute(argv: list[str]) -> None:
    import _signal  # type: ignore[import-not-found]

    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them, programs do not expect that
        _signal.signal(number, _signal.SIG_DFL)
    os.execv(argv[0], argv)  # noqa: S606


def prepare_python() -> None:
    """A process as a tool expects it: lines of output are seen as they are printed, its own folder and its requirements can
    be imported, and none of what serves it here, whose names it may use itself."""
    set_dumpable(True)
    for name in [name for name in sys.modules if name.partition(".")[0] == OWN_PACKAGE]:
        del sys.modules[name]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="replace")  # type: ignore[union-attr]
    sys.path.remove(OWN_FOLDER)
    sys.path.insert(0, HOME)
    if os.path.isdir(LAYER):
        sys.path.append(LAYER)
    sys.argv[:] = ["main.py"]


def run_tool(args: dict[str, Any], writing: int, limit: int) -> None:
    """Import main.py, call run(args), answer."""
    prepare_python()
    try:
        gc.disable()  # nothing that an import makes is garbage: looking for it takes a tenth of the time
        import main  # type: ignore[import-not-found]

        gc.enable()
        answer = checked(main.run(args), limit)
    except BaseException as error:  # noqa: BLE001  also SystemExit: the answer says so
        answer = failure(error)
    flush()
    write_all(writing, packed(frame_bytes(answer)))
