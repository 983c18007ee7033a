"""Work is done again where the database called it off: in favour of another's, or since the connection broke.

With one writer per user that is rare: two transactions that hold rows of several users, or of the instance, may wait for each
other. Only what has committed nothing so far is done again.
"""

import random
import time
from collections.abc import Callable
from typing import Any, TypeVar, cast

from django.db import DatabaseError, InterfaceError, connection

from apps.core.db.counting import RETRIES
from apps.core.db.troubles import sqlstate

T = TypeVar("T")

TRIES = 4
COLLISIONS = frozenset({"40001", "40P01"})
WAIT_SECONDS = 0.05
"""Before the second try, about; three times as long before each further one: 0.6 s in all."""


def repeated(work: Callable[[], T]) -> T:
    """The result of `work`, which is called again after a collision or a broken connection as long as it has committed nothing;
    what it raises in the end. Synchronous."""
    if connection.vendor == "sqlite" or connection.in_atomic_block:
        return work()
    database = cast("Any", connection)
    for tried in range(1, TRIES):
        before, losses = database.commits, database.losses
        try:
            return work()
        except (DatabaseError, InterfaceError) as error:
            # Django replaces one that breaks within a block of a transaction by itself.
            lost = database.is_lost() or database.losses != losses
            if database.commits != before or not (lost or sqlstate(error) in COLLISIONS):
                raise
            RETRIES.add("lost connection" if lost else "collision")
            if lost:
                connection.close()
        time.sleep(WAIT_SECONDS * 3 ** (tried - 1) * random.uniform(0.5, 1.5))
    return work()
