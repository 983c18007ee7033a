"""Django's SQLite backend, with writers that take turns, and connections that are used again.

SQLite has one writer at a time. Who finds it busy sleeps for longer and longer (up to 0.1 s) and asks again, so that one
writer among many short ones can miss its chance for a second. Here writers wait in line instead: first behind the other
threads of their process, then behind other processes, and are woken when it is their turn. A process with many writers
has one place in the line, so the worker's builds do not hold up the chat.

The line is for fairness alone; SQLite's own locks keep the data safe, also from programs that know nothing of it.

A request has a thread of its own and so would open a connection of its own, which costs more than a dozen queries: SQLite
reads the whole schema, and Django adds its functions. One is ours: `izzy_fold` (`apps/core/db/saying.py`).
"""

import atexit
import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from typing import Any
from weakref import WeakSet

from django.db.backends.sqlite3 import base as sqlite
from django.db.utils import OperationalError

from apps.core.db.pool import CountsErrors
from apps.core.private import private
from apps.core.text import fold

SUFFIX = "-turn"
"""The line of `izzy.sqlite3` is at the empty file `izzy.sqlite3-turn`, locked with flock: the system frees it when a
process dies."""

_lines: dict[str, threading.Lock] = {}


class Turn:
    """The place of one connection in the line of the database file at `path`; "" for one in memory, which has no line. Not for
    several threads at once."""

    def __init__(self, path: str, seconds: float) -> None:
        self._line = _lines.setdefault(path, threading.Lock()) if path else threading.Lock()
        self._seconds = seconds
        self._file: int | None = None
        with suppress(
            OSError
        ):  # it may not be opened: then only the threads of this process wait for each other
            if path:
                self._file = os.open(path + SUFFIX, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._mine = False

    def take(self) -> None:
        """Waits until it is our turn. OperationalError "database is locked" when the process' other threads did not finish
        within `seconds`.

        At the head of its process the wait for other processes has no end: they finish or die.
        """
        if self._mine:
            return
        if not self._line.acquire(timeout=self._seconds):
            raise OperationalError("database is locked")
        self._mine = True
        try:
            if self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX)
        except BaseException:
            self.give()
            raise

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


Key = tuple[int, str, int, int]
"""Process, path and options, device and number of the file."""


class Idle:
    """Open connections that nobody uses at the moment, at most `most` to a database. For several threads at once.

    A file that was replaced, as by a restore, is another database. After a fork the child has none: SQLite's must not be
    carried over, nor closed there, since that would give away the parent's locks.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[Key, list[sqlite3.Connection]] = {}

    def key(self, settings: dict[str, Any]) -> Key | None:
        """The database that a connection opened now would be to; None where there is no file (yet)."""
        with suppress(OSError):
            found = os.stat(settings["NAME"])
            return os.getpid(), _place(settings), found.st_dev, found.st_ino
        return None

    def take(self, key: Key) -> sqlite3.Connection | None:
        """One of them. Those to a file that stood in the same place before are closed."""
        with self._lock:
            for old in [old for old in self._kept if old[:2] == key[:2] and old != key]:
                self._close(old)
            kept = self._kept.get(key)
            return kept.pop() if kept else None

    def keep(self, key: Key, connection: sqlite3.Connection) -> bool:
        """Whether it is kept; else the caller closes it."""
        with self._lock:
            kept = self._kept.setdefault(key, [])
            if len(kept) >= self._most:
                return False
            kept.append(connection)
            return True

    def close(self, settings: dict[str, Any] | None = None) -> None:
        """Closes all of this process, or only those to one database. The last connection to go moves what the log holds into
        the database's file."""
        place = settings and _place(settings)
        with self._lock:
            for key in [key for key in self._kept if key[0] == os.getpid() and place in (None, key[1])]:
                self._close(key)

    def _close(self, key: Key) -> None:
        for connection in self._kept.pop(key):
            connection.close()


def _place(settings: dict[str, Any]) -> str:
    return f"{settings['NAME']} {settings['OPTIONS']}"


idle = Idle(most=4)
atexit.register(idle.close)

WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


class DatabaseWrapper(CountsErrors, sqlite.DatabaseWrapper):
    """Every transaction takes the write lock when it begins, and so waits for its turn; a statement that writes
    outside a transaction does the same for itself. OperationalError "database is locked" after OPTIONS["timeout"]."""

    @cached_property
    def turn(self) -> Turn:
        """Its place in the line, until it is closed."""
        path = "" if self.is_in_memory_db() else str(self.settings_dict["NAME"])
        return Turn(path, self.settings_dict["OPTIONS"].get("timeout", 5.0))

    def tables_state(self) -> Any:
        """Rows, a name first, that differ once a table has been made, changed or removed."""
        with self.cursor() as cursor:
            cursor.execute("SELECT sql FROM sqlite_master")
            return tuple(cursor.fetchall())

    def get_new_connection(self, conn_params: dict[str, Any]) -> sqlite3.Connection:
        self._cursors: WeakSet[Cursor] = WeakSet()
        self._place = None if self.is_in_memory_db() else idle.key(self.settings_dict)
        kept = self._place and idle.take(self._place)
        if kept:
            return kept
        if self._place is None and not self.is_in_memory_db():
            with suppress(OSError):  # SQLite says what is wrong
                open(self.settings_dict["NAME"], "xb", opener=private).close()
        opened: sqlite3.Connection = super().get_new_connection(conn_params)
        opened.create_function("izzy_fold", 1, fold, deterministic=True)
        return opened

    def create_cursor(self, name: str | None = None) -> "Cursor":
        cursor: Cursor = self.connection.cursor(factory=Cursor)
        cursor.database = self
        self._cursors.add(cursor)
        return cursor

    def _start_transaction_under_autocommit(self) -> None:
        self.turn.take()
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except BaseException:
            self.turn.give()
            raise

    def _commit(self) -> None:
        super()._commit()
        self.turn.give()

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]
        self.turn.give()

    def _close(self) -> None:
        try:
            if not self._is_kept():
                super()._close()  # type: ignore[misc]
        finally:
            if "turn" in self.__dict__:
                self.turn.close()
                del self.turn

    def close_pool(self) -> None:
        """Lets go of the file altogether, for somebody who wants it alone; PostgreSQL's backend has the same."""
        idle.close(self.settings_dict)

    def _is_kept(self) -> bool:
        """Whether the connection waits for its next use. One that met an error or is in a transaction does not; nor one with a
        cursor that somebody holds, for that may be in the middle of a result, and so show the next user the past."""
        if (
            self._place is None
            or self._cursors
            or self.errors_occurred
            or self.connection.in_transaction
        ):
            return False
        return idle.keep(self._place, self.connection)


class Cursor(sqlite.SQLiteCursorWrapper):
    """Waits for the connection's turn before a statement that writes outside a transaction."""

    database: DatabaseWrapper

    def execute(self, query: str, params: Any = None) -> Any:
        if self.connection.in_transaction or not query.startswith(WRITES):
            return super().execute(query, params)
        self.database.turn.take()
        try:
            done = super().execute(query, params)
            self.database.commits += 1
            return done
        finally:
            self.database.turn.give()

    def executemany(self, query: str, param_list: Iterable[Any]) -> Any:
        if self.connection.in_transaction or not query.startswith(WRITES):
            return super().executemany(query, param_list)
        self.database.turn.take()
        try:
            done = super().executemany(query, param_list)
            self.database.commits += 1
            return done
        finally:
            self.database.turn.give()
