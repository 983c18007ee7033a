"""Queues are rows: how many wait, and for how long the most overdue has."""

from collections.abc import Callable
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from apps.core.metrics.base import queues

MOST = 100_000
"""Rows that are counted: of more the figure says so many. Counting them all would take a scrape's time of its own."""


def register_queue(
    name: str, rows: Callable[[], QuerySet[Any]], *, since: str = "", first: str = ""
) -> None:
    """Have `/metrics` show a queue. `rows` gives what waits, found by an index; `since` names the field with the time from
    which on a row is due, "" where none says, and `first` an indexed order that has the oldest in front (else `since`)."""

    def read() -> tuple[int, float]:
        waiting = rows().order_by()
        number = waiting[:MOST].count()
        if not number or not since:
            return number, 0.0
        oldest = waiting.order_by(first or since).values_list(since, flat=True).first()
        return number, (timezone.now() - oldest).total_seconds() if oldest is not None else 0.0

    queues[name] = read
