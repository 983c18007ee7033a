"""Django's PostgreSQL backend; a transaction that writes for a user is the only one that does (`core.db.writing`).

Services were written for SQLite, which has one writer at a time: what a transaction has read stays true until it ends.
Here a transaction holds the advisory lock of the user whose rows it writes from its beginning, which gives the same for the
rows of one user, and lets users write side by side. A write without that lock is refused (`UnlockedWrite`).
"""

from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any
from uuid import UUID

import psycopg
from django.db import InternalError, OperationalError, transaction
from django.db.backends.postgresql import base as postgresql
from django.utils.functional import cached_property
from psycopg_pool import PoolTimeout

from apps.core.db.pool import CountedErrors, CountsErrors
from apps.core.db.postgresql.statements import owners_of, written_by
from apps.core.db.writing import LOCK_SECONDS, UnlockedWrite, claiming, unlocked_refused, writer

_TABLES = (
    "SELECT c.relname, c.oid::bigint, c.relnatts, c.xmin::text FROM pg_class c "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' ORDER BY 1"
)

LOCK = (
    # A process that hangs in the middle of a transaction does not keep its user from writing for ever.
    "SELECT pg_advisory_xact_lock(%s), set_config('idle_in_transaction_session_timeout', '60s', true)"
)
SESSION = (
    f"SET lock_timeout = '{LOCK_SECONDS}s'",
    # A host that is cut off keeps its locks until the server has noticed: after 25 seconds, not two hours.
    "SET tcp_keepalives_idle = 10",
    "SET tcp_keepalives_interval = 5",
    "SET tcp_keepalives_count = 3",
    "SET tcp_user_timeout = '25s'",  # of what was sent and is not confirmed: keepalives do not count then
)
CLIENT = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
"""The same on our side, where the address says nothing else: whoever waits for a server that is gone gets an error."""


def lock_key(user_id: UUID) -> int:
    """The user's advisory lock: a signed number of 64 bits, made of the random half of the id."""
    return (user_id.int & (2**64 - 1)) - 2**63


class _Errors(CountedErrors):
    """As Django names them; but a server that takes no writes for now is out of order, as one with a full disk: no bug of ours."""

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            super().__exit__(exc_type, exc_value, traceback)
        except InternalError as error:
            if isinstance(error.__cause__, psycopg.errors.ReadOnlySqlTransaction):
                raise OperationalError(*error.args) from error.__cause__
            raise


class DatabaseWrapper(CountsErrors, postgresql.DatabaseWrapper):
    """A transaction begun within `writing_for(user_id)` waits until no other one writes for that user."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._held: dict[UUID, list[str]] = {}  # users locked, with the savepoints that were open then
        self.execute_wrappers.append(self._guard)

    @cached_property
    def wrap_database_errors(self) -> Any:
        return _Errors(self)

    def tables_state(self) -> Any:
        """Rows, a name first, that differ once a table has been made, changed or removed."""
        with self.cursor() as cursor:
            cursor.execute(_TABLES)
            return tuple(cursor.fetchall())

    def get_connection_params(self) -> dict[str, Any]:
        return CLIENT | super().get_connection_params()

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        try:
            return super().get_new_connection(conn_params)
        except PoolTimeout:
            # The pool keeps the reason to itself; asked directly, the server says what is wrong.
            psycopg.connect(**conn_params).close()
            raise

    def lock_user(self, user_id: UUID) -> None:
        """Waits until no other transaction writes for the user; ours must have begun."""
        if user_id not in self._held:
            with self.wrap_database_errors:
                self.connection.execute(LOCK, (lock_key(user_id),))
            self._held[user_id] = list(self.savepoint_ids)

    def _configure_connection(self, connection: Any) -> bool:
        for statement in SESSION:
            connection.execute(statement)
        return bool(super()._configure_connection(connection)) or True  # type: ignore[misc]

    def _set_autocommit(self, autocommit: bool) -> None:
        super()._set_autocommit(autocommit)  # type: ignore[misc]
        self._held.clear()
        if autocommit or (user_id := writer.get()) is None:
            return
        try:
            self.lock_user(user_id)
        except BaseException:
            # A connection that broke has nothing to take back, and what broke it is what is raised.
            with suppress(psycopg.Error):
                self.connection.rollback()
                self.connection.autocommit = True
            raise

    def _savepoint(self, sid: str) -> None:
        if (user_id := writer.get()) is not None:
            self.lock_user(user_id)
        super()._savepoint(sid)  # type: ignore[misc]

    def _savepoint_rollback(self, sid: str) -> None:
        super()._savepoint_rollback(sid)  # type: ignore[misc]
        for user_id in [user_id for user_id, within in self._held.items() if sid in within]:
            del self._held[user_id]  # what was locked after the savepoint is free again

    def is_lost(self) -> bool:
        return self.connection is not None and bool(self.connection.closed)

    def _close(self) -> None:
        self._held.clear()
        self.losses += self.is_lost()
        super()._close()  # type: ignore[misc]

    def _guard(
        self,
        execute: Callable[..., Any],
        sql: str,
        parameters: Any,
        many: bool,
        context: dict[str, Any],
    ) -> Any:
        """Sees every statement. One that writes users' rows outside a transaction begins its own, with the lock."""
        written = written_by(sql)
        if written is None:
            return execute(sql, parameters, many, context)
        owners = owners_of(written, parameters, many)
        if self.in_atomic_block:
            locked = owners <= self._held.keys() if owners else bool(self._held)
            if not locked and not claiming.get():
                self._unlocked(written.table, owners)
            return execute(sql, parameters, many, context)
        user_id = writer.get() or (next(iter(owners)) if len(owners) == 1 else None)
        if user_id is not None:
            with transaction.atomic(using=self.alias):
                self.lock_user(user_id)
                return self._guard(execute, sql, parameters, many, context)
        if not claiming.get():
            self._unlocked(written.table, owners)
        self.commits += 1
        return execute(sql, parameters, many, context)

    def _unlocked(self, table: str, owners: set[UUID]) -> None:
        """Raises UnlockedWrite where that is not to be; else the lock is taken now, if late."""
        if not unlocked_refused():
            for user_id in sorted(owners) if self.in_atomic_block else ():
                self.lock_user(user_id)
            return
        whose = ", ".join(map(str, sorted(owners))) or "a user"
        raise UnlockedWrite(
            f"A write to {table} for {whose} without the user's lock: begin the work, and its transaction, within"
            " writing_for(user_id), see apps/core/db/writing.py."
        )
