"""Pipes between a supervisor and its children.

The supervisor alone holds the writing ends of the first two. One closes when the supervisor is gone, whatever the cause,
since the kernel closes it even after SIGKILL: the children then go too. The gate closes when the database is up to date:
until then a child loads its modules and waits, which brings the first page a second sooner. Into the third, the
heartbeat, a child writes that it lives.
"""

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

PARENT = "IZZY_PARENT_FD"
GATE = "IZZY_GATE_FD"
HEARTBEAT = "IZZY_HEARTBEAT_FD"
BEAT_SECONDS = 2.0
WRITE_STACKS = signal.SIGUSR1
GRACE_SECONDS = 5.0


def watch_parent() -> None:
    """In a child: end this process when the supervisor is gone, politely first, then at once; and have it write the stacks of
    its threads to stderr when the supervisor asks, also while the interpreter's lock is held."""
    descriptor = _inherited(PARENT)
    if descriptor is not None:
        faulthandler.register(WRITE_STACKS, all_threads=True)
        threading.Thread(
            target=_wait_for_end, args=(descriptor,), name="parent watch", daemon=True
        ).start()


def wait_at_gate() -> bool:
    """In a child: return when the supervisor has brought the database up to date. False at once where there is no supervisor."""
    descriptor = _inherited(GATE)
    if descriptor is None:
        return False
    while os.read(descriptor, 1):
        pass
    os.close(descriptor)
    return True


def beat_for_ever() -> NoReturn:
    """In a child, in its main thread: tell the supervisor that this process lives, until a signal's handler raises."""
    beat = heartbeat()
    while True:
        if beat is not None:
            beat()
        time.sleep(BEAT_SECONDS)


def heartbeat() -> Callable[[], None] | None:
    """In a child: what tells the supervisor that this process lives; None where nobody listens for that."""
    descriptor = _inherited(HEARTBEAT)
    if descriptor is None:
        return None

    def beat() -> None:
        with suppress(OSError):  # the pipe is full, or the supervisor gone
            os.write(descriptor, b".")

    return beat


def _inherited(variable: str) -> int | None:
    number = os.environ.pop(variable, "")
    if not number:
        return None
    descriptor = int(number)
    os.set_inheritable(descriptor, False)
    return descriptor


def _wait_for_end(descriptor: int) -> None:
    while os.read(descriptor, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(1)
