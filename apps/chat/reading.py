"""Several queries that see the database at one moment."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def one_view() -> Iterator[None]:
    """All queries inside see the same state, and nobody is kept from writing meanwhile.

    On SQLite `transaction.atomic` takes the write lock when it begins (that is the setting); this begins a transaction
    that only reads. Write nothing inside. May be nested.
    """
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        with transaction.atomic():
            yield
        return
    connection.ensure_connection()
    if connection.connection.in_transaction:
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            cursor.execute("ROLLBACK")
