"""Whether the database file itself is whole, as far as the engine can tell."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from django.db import connection

MAX_REPORTS = 100
_INDEX = re.compile(r"(?:missing from|of entries in|non-unique entry in) index (?P<index>[^\s:]+)")


class Damage(NamedTuple):
    """`of_index` names the index that holds what is wrong, "" where it is more than an index."""

    report: str
    of_index: str = ""


def damages() -> Iterator[Damage]:
    """SQLite's findings about its file, MAX_REPORTS at most; nothing where the engine keeps watch by itself."""
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA integrity_check({MAX_REPORTS})")
        while row := cursor.fetchone():
            for line in str(row[0]).splitlines():
                if line != "ok" and not line.startswith("*** in database"):
                    found = _INDEX.search(line)
                    yield Damage(line, found["index"] if found else "")


def foreign_keys_hold() -> bool:
    """Whether the engine knows that all foreign keys hold; False where it has to be looked at."""
    if connection.vendor != "sqlite":
        return False
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA foreign_key_check")
        return cursor.fetchone() is None


def index_rebuild(name: str) -> None:
    """Write an index anew from its table. Raises DatabaseError where the rows do not allow that."""
    with connection.cursor() as cursor:
        cursor.execute(f"REINDEX {connection.ops.quote_name(name)}")
