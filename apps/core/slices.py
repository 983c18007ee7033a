"""Removing very many rows without holding up whoever else wants to write: some at a time, with a pause in between."""

import time
from collections.abc import Callable
from typing import Any

from django.db import connection, models, transaction

SLICE = 200
"""Rows of one slice: some ten milliseconds of the write lock."""
PAUSE_SECONDS = 0.002
"""So long between two slices that whoever waits in line is awake and has its turn."""


def in_slices(remove: Callable[[], bool]) -> None:
    """Calls `remove`, one short transaction, for as long as it says that there may be more. Inside a transaction nobody else
    can write in between all the same."""
    while remove():
        if not connection.in_atomic_block:
            time.sleep(PAUSE_SECONDS)


@transaction.atomic
def rows_remove(*kinds: "models.QuerySet[Any]", room: int = SLICE) -> bool:
    """Removes at most `room` rows, of the first kind first; whether there may be more. Rows that others point to come last."""
    for rows in kinds:
        keys = list(rows.order_by().values_list("pk", flat=True)[:room])
        if keys:
            rows.model._base_manager.filter(pk__in=keys).delete()
        room -= len(keys)
        if room <= 0:
            return True
    return False
