"""A pipe that ties children to their supervisor: when its end closes, whatever the cause, they go too.

The supervisor alone holds the writing end, so that the kernel closes it even after SIGKILL.
"""

import os
import signal
import threading
import time

VARIABLE = "IZZY_LIFELINE_FD"
GRACE_SECONDS = 5.0


def hold_lifeline() -> None:
    """In a child: end this process when the supervisor is gone; politely first, then at once."""
    number = os.environ.pop(VARIABLE, "")
    if not number:
        return
    descriptor = int(number)
    os.set_inheritable(descriptor, False)
    threading.Thread(target=_wait_for_end, args=(descriptor,), name="lifeline", daemon=True).start()


def _wait_for_end(descriptor: int) -> None:
    while os.read(descriptor, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE_SECONDS)
    os._exit(1)
