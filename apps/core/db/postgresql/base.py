"""Django's PostgreSQL backend, whose transactions write one after the other.

Services were written for SQLite, which has one writer at a time: what a transaction has read stays true until it ends.
Here a transaction takes an advisory lock as it begins, which gives the same: the one of the user whose rows it writes where that
is said (`core.db.writing.writing_for`), so that users write side by side, else one for everybody.
"""

from typing import Any
from uuid import UUID

from django.db.backends.postgresql import base as postgresql

from apps.core.db.counting import CountsErrors
from apps.core.db.writing import writer

_TABLES = (
    "SELECT c.relname, c.oid::bigint, c.relnatts, c.xmin::text FROM pg_class c "
    "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' ORDER BY 1"
)


def lock_key(user_id: UUID) -> int:
    """The user's advisory lock: a signed number of 64 bits, made of the random half of the id."""
    return (user_id.int & (2**64 - 1)) - 2**63


class DatabaseWrapper(CountsErrors, postgresql.DatabaseWrapper):
    """A transaction waits until no other one writes for the same user, or for everybody. One that only reads (`one_view`) waits
    for nobody."""

    def tables_state(self) -> Any:
        """Rows, a name first, that differ once a table has been made, changed or removed."""
        with self.cursor() as cursor:
            cursor.execute(_TABLES)
            return tuple(cursor.fetchall())

    def _set_autocommit(self, autocommit: bool) -> None:
        super()._set_autocommit(autocommit)  # type: ignore[misc]
        if not autocommit and (user_id := writer.get()) is not None:
            self.connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_key(user_id),))
