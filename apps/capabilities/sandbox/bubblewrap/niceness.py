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
    """All processes of the session and group that `leader` leads. False where the kernel wants to be asked again a little
    later: it lets others than root change ten sessions a second."""
    with contextlib.suppress(OSError):  # it has ended
        os.setpriority(os.PRIO_PGRP, leader, niceness)
    try:
        descriptor = os.open(f"/proc/{leader}/autogroup", os.O_WRONLY)
    except OSError:
        return True  # ended, or a kernel without
    try:
        os.write(descriptor, str(niceness).encode())
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return True
