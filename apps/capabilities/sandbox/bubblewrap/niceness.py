"""Sandboxes stand back: the server, and the worker that writes to the database, go before them where the processor is short.

Two settings, since there are two ways to share a processor. Niceness counts among processes that share alike; where the
kernel shares by sessions first (`sched_autogroup`, on by default), it says nothing about another session's processes, and
the session itself must be made nicer. So a sandbox is a session of its own, led by bwrap.
"""

import contextlib
import os

STEP = 5
MOST = 19


def sandbox_niceness() -> int:
    """Of a sandbox that the calling thread starts."""
    return min(MOST, os.getpriority(os.PRIO_PROCESS, 0) + STEP)


def stand_back(leader: int, niceness: int) -> bool:
    """All processes of the session and group that `leader` leads; answers as `session_stands_back`."""
    with contextlib.suppress(OSError):  # it has ended
        os.setpriority(os.PRIO_PGRP, leader, niceness)
    return session_stands_back(leader, niceness)


def session_stands_back(pid: int, niceness: int) -> bool:
    """The session of this process. False where the kernel wants to be asked again a little later: it lets others than root
    change ten sessions a second."""
    try:
        with open(f"/proc/{pid}/autogroup", "r+b", buffering=0) as file:
            if int((file.read().split() or [b"0"])[-1]) < niceness:
                return file.write(str(niceness).encode()) is not None
    except OSError:
        pass  # it has ended, or this is a kernel without
    return True
