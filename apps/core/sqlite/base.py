"""The database wrapper that Django loads by the name of this package (`ENGINE`)."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from django.db.backends.sqlite3 import base as sqlite
from django.db.utils import OperationalError

from apps.core.sqlite.turns import Turn

WRITES = ("INSERT", "UPDATE", "DELETE", "REPLACE")


class DatabaseWrapper(sqlite.DatabaseWrapper):
    """Every transaction takes the write lock when it begins, and so waits for its turn; a statement that writes
    outside a transaction does the same for itself. OperationalError "database is locked" after OPTIONS["timeout"]."""

    _turn: Turn | None = None

    def create_cursor(self, name: str | None = None) -> "Cursor":
        cursor: Cursor = self.connection.cursor(factory=partial(Cursor, writing=self.writing))
        return cursor

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One statement's turn."""
        self._take_turn()
        try:
            yield
        finally:
            self._give_turn()

    def _start_transaction_under_autocommit(self) -> None:
        self._take_turn()
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]
        except BaseException:
            self._give_turn()
            raise

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]
        self._give_turn()

    def _rollback(self) -> None:
        super()._rollback()  # type: ignore[misc]
        self._give_turn()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            if self._turn is not None:
                self._turn.close()
                self._turn = None

    def _take_turn(self) -> None:
        if self.is_in_memory_db():
            return
        if self._turn is None:
            self._turn = Turn(str(self.settings_dict["NAME"]))
        if not self._turn.take(self.settings_dict["OPTIONS"].get("timeout", 5.0)):
            raise OperationalError("database is locked")

    def _give_turn(self) -> None:
        if self._turn is not None:
            self._turn.give()


class Cursor(sqlite.SQLiteCursorWrapper):
    """Waits for the connection's turn before a statement that writes outside a transaction."""

    def __init__(self, connection: Any, writing: Callable[[], AbstractContextManager[None]]) -> None:
        super().__init__(connection)
        self._writing = writing

    def execute(self, query: str, params: Any = None) -> Any:
        if self.connection.in_transaction or not query.startswith(WRITES):
            return super().execute(query, params)
        with self._writing():
            return super().execute(query, params)

    def executemany(self, query: str, param_list: Iterable[Any]) -> Any:
        if self.connection.in_transaction or not query.startswith(WRITES):
            return super().executemany(query, param_list)
        with self._writing():
            return super().executemany(query, param_list)
