"""The runner's children. It is the first process of its namespace, so whatever loses its parent becomes its child too, and
is laid to rest here: a zombie counts as a process."""

from __future__ import annotations

import os

_own: set[int] = set()
_ended: dict[int, int] = {}
"""Exit codes of own children that ended while another was waited for."""


def fork() -> int:
    pid = os.fork()
    if pid:
        _own.add(pid)
    return pid


def ended(pid: int, *, wait: bool) -> int | None:
    """The exit code of an own child; None where it still runs. Given out once: the number may then be another's."""
    while pid not in _ended:
        found, status = os.waitpid(-1, 0 if wait else os.WNOHANG)
        if not found:
            return None
        if found in _own:
            _ended[found] = exit_code(status)
    _own.remove(pid)
    return _ended.pop(pid)


def kill(pid: int) -> None:
    """End an own child. One whose end was seen is gone already."""
    if pid in _own:
        os.kill(pid, 9)
        ended(pid, wait=True)


def exit_code(status: int) -> int:
    """As subprocess has it: -N where signal N ended the process."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
