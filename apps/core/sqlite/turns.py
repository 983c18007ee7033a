"""Whose turn it is to write to a database file.

SQLite has one writer at a time. Who finds it busy sleeps for longer and longer (up to 0.1 s) and asks again, so that one
writer among many short ones can miss its chance for a second. Here writers wait in line instead: first behind the other
threads of their process, then behind other processes, and are woken when it is their turn. A process with many writers
has one place in the line, so the worker's builds do not hold up the chat.

The line is for fairness alone; SQLite's own locks keep the data safe, also from programs that know nothing of it.
"""

import fcntl
import os
import threading

SUFFIX = "-turn"
"""The line of `izzy.sqlite3` is at the empty file `izzy.sqlite3-turn`, locked with flock: the system frees it when a
process dies."""

_lines: dict[str, threading.Lock] = {}


class Turn:
    """The place of one connection in the line of the database file at `path`. Not for several threads at once."""

    def __init__(self, path: str) -> None:
        self._line = _lines.setdefault(path, threading.Lock())
        self._file = _open(path + SUFFIX)
        self._mine = False

    def take(self, seconds: float) -> bool:
        """Waits until it is our turn; False when the process' other threads did not finish within `seconds`.

        At the head of its process the wait for other processes has no end: they finish or die.
        """
        if self._mine:
            return True
        if not self._line.acquire(timeout=seconds):
            return False
        self._mine = True
        try:
            if self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX)
        except BaseException:
            self.give()
            raise
        return True

    def give(self) -> None:
        """Lets the next one write; harmless when it is not our turn."""
        if not self._mine:
            return
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        self._mine = False
        self._line.release()

    def close(self) -> None:
        """Leaves the line for good."""
        self.give()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.close()


def _open(path: str) -> int | None:
    """The file, or None where it may not be opened: then only the threads of this process wait for each other."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
