"""Work that one process of all hosts does at a time."""

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import DatabaseError, connection

from apps.core.db.pool import database_file
from apps.core.private import private

_BEGIN = "BEGIN; SET LOCAL lock_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
"""However long another is inside, and this process is."""


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Waits until no other process is inside a block of this name, over this database. It ends with the process, too."""
    if connection.vendor == "postgresql":
        key = int.from_bytes(hashlib.sha256(f"izzy {name}".encode()).digest()[:8], signed=True)
        # A transaction of its own, which a pooler keeps to one connection of the server.
        other = connection.copy()
        try:
            with other.cursor() as cursor:
                cursor.execute(_BEGIN)
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [key])
                yield
                with suppress(DatabaseError):  # a connection that broke has let go of it by itself
                    cursor.execute("ROLLBACK")
        finally:
            other.close()
    elif (file := database_file()) is not None:
        with open(file.with_name(f"{file.name}-{name}"), "w", opener=private) as door:
            fcntl.flock(door, fcntl.LOCK_EX)
            yield
    else:
        yield
