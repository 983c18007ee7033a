"""Django's SQLite backend, loaded by the name of this package (`ENGINE`), with writers that take turns.

SQLite has one writer at a time. Who finds it busy sleeps for longer and longer (up to 0.1 s) and asks again, so that one
writer among many short ones can miss its chance for a second. Here writers wait in line instead: first behind the other
threads of their process, then behind other processes, and are woken when it is their turn. A process with many writers
has one place in the line, so the worker's builds do not hold up the chat.

The line is for fairness alone; SQLite's own locks keep the data safe, also from programs that know nothing of it.
"""

import fcntl
import os
import threading
from collections.abc import Iterable
from typing import Any

from django.db.backends.sqlite3 import base as sqlite
from django.db.utils import OperationalError

SUFFIX = "-turn"
"""The line of `izzy.sqlite3` is at the empty file `izzy.sqlite3-turn`, locked with flock: the system frees it when a
process dies."""

_lines: dict[str, threading.Lock] = {}


class Turn:
    """The place of one connection in the line of the database file at `path`. Not for several threads at once."""

    def __init__(self, path: str) -> None:
        self._line = _lines.setdefault(path, threading.Lock())
        self._file: int | None
        try:
            self._file = os.open(path + SUFFIX, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except (
            OSError
        ):  # it may not be opened: then only the threads of this process wait for each other
            self._file = None
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

    __del__ = close


WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


class DatabaseWrapper(sqlite.DatabaseWrapper):
    """Every transaction takes the write lock when it begins, and so waits for its turn; a statement that writes
    outside a transaction does the same for itself. OperationalError "database is locked" after OPTIONS["timeout"]."""

    _turn: Turn | None = None

    def create_cursor(self, name: str | None = None) -> "Cursor":
        cursor: Cursor = self.connection.cursor(factory=Cursor)
        cursor.database = self
        return cursor

    def _start_transaction_under_autocommit(self) -> None:
        self.take_turn()
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except BaseException:
            self.give_turn()
            raise

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]
        self.give_turn()

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]
        self.give_turn()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            if self._turn is not None:
                self._turn.close()
                self._turn = None

    def take_turn(self) -> None:
        """Waits for the connection's turn to write; OperationalError when it does not come in time."""
        if self.is_in_memory_db():
            return
        if self._turn is None:
            self._turn = Turn(str(self.settings_dict["NAME"]))
        if not self._turn.take(self.settings_dict["OPTIONS"].get("timeout", 5.0)):
            raise OperationalError("database is locked")

    def give_turn(self) -> None:
        """Ends the connection's turn, where it has one."""
        if self._turn is not None:
            self._turn.give()


class Cursor(sqlite.SQLiteCursorWrapper):
    """Waits for the connection's turn before a statement that writes outside a transaction."""

    database: DatabaseWrapper

    def execute(self, query: str, params: Any = None) -> Any:
        if self.connection.in_transaction or not query.startswith(WRITES):
            return super().execute(query, params)
        self.database.take_turn()
        try:
            return super().execute(query, params)
        finally:
            self.database.give_turn()

    def executemany(self, query: str, param_list: Iterable[Any]) -> Any:
        if self.connection.in_transaction or not query.startswith(WRITES):
            return super().executemany(query, param_list)
        self.database.take_turn()
        try:
            return super().executemany(query, param_list)
        finally:
            self.database.give_turn()
