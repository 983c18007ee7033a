"""Two pipes between a supervisor and its children, of which the supervisor alone holds the writing ends.

The lifeline closes when the supervisor is gone, whatever the cause, since the kernel closes it even after SIGKILL: the
children then go too. The gate closes when the database is up to date: until then a child loads its modules
and waits, which brings the first page a second sooner.
"""

import os
import signal
import threading
import time

LIFELINE = "IZZY_LIFELINE_FD"
GATE = "IZZY_GATE_FD"
GRACE_SECONDS = 5.0


def hold_lifeline() -> None:
    """In a child: end this process when the supervisor is gone; politely first, then at once."""
    descriptor = _inherited(LIFELINE)
    if descriptor is not None:
        threading.Thread(target=_wait_for_end, args=(descriptor,), name="lifeline", daemon=True).start()


def wait_at_gate() -> None:
    """In a child: return when the supervisor has brought the database up to date."""
    descriptor = _inherited(GATE)
    if descriptor is not None:
        while os.read(descriptor, 1):
            pass
        os.close(descriptor)


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
