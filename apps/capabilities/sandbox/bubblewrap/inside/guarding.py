"""Keeping a tool's hands off the runner, which has the same user as the tool."""

from __future__ import annotations

PR_SET_DUMPABLE = 4


def set_dumpable(value: bool) -> None:
    """Whether processes of the same user may look into this one (`/proc/PID/mem`, `/proc/PID/fd`, ptrace). Children begin
    with what their parent has; starting another program permits it again.

    By ctypes' inner module, since importing ctypes itself takes a third of a sandbox's start. A Python without it leaves
    the door open: what is behind it is in the same sandbox.
    """
    try:
        import _ctypes
    except ImportError:
        return
    own = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # the program itself
    _ctypes.call_function(_ctypes.dlsym(own, "prctl"), (PR_SET_DUMPABLE, int(value), 0, 0, 0))
