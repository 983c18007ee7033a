"""The answer of `/metrics`: the figures of all processes of this machine, and those of the instance's rows."""

import logging
import shutil
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from typing import Any

from django.conf import settings
from django.db import DatabaseError

from apps.core.metrics import processes
from apps.core.metrics.base import queues

logger = logging.getLogger(__name__)

ROWS, OVERDUE = "izzy_queue_rows", "izzy_queue_overdue_seconds"
UP, DISK = "izzy_database_up", "izzy_disk_free_bytes"
SHARED = {
    ROWS: "Rows that wait for their work, or are under way where the queue says so.",
    OVERDUE: "How long the most overdue row of the queue has waited beyond its time.",
    UP: "Whether the database answered this scrape: 1 or 0.",
    DISK: "Free bytes where the data directory lies.",
}
"""Gauges that are read at each scrape."""


def metrics_text() -> tuple[bytes, str]:
    """The figures in Prometheus' text format, and its content type. Synchronous; a query or two for each queue."""
    from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

    multiprocess: Any = import_module("prometheus_client.multiprocess")
    processes.metrics_open()
    shown = CollectorRegistry()
    if processes.is_shared():
        place = processes.folder()
        processes.bury(place)
        multiprocess.MultiProcessCollector(shown, path=str(place))
    else:
        shown.register(processes.registry)
    shown.register(_Rows())
    return generate_latest(shown), CONTENT_TYPE_LATEST


class _Rows:
    """prometheus_client's collector of what is read when it is asked for."""

    def describe(self) -> list[Any]:
        return []

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import GaugeMetricFamily

        up = True
        waiting, overdue = (
            GaugeMetricFamily(name, SHARED[name], labels=("queue",)) for name in (ROWS, OVERDUE)
        )
        try:
            for queue, read in sorted(queues.items()):
                rows, seconds = read()
                waiting.add_metric((queue,), rows)
                overdue.add_metric((queue,), max(0.0, seconds))
            yield from (waiting, overdue)
        except DatabaseError as error:
            logger.warning("the database's figures cannot be read: %s", error)
            up = False
        yield GaugeMetricFamily(UP, SHARED[UP], int(up))
        with suppress(OSError):
            free = shutil.disk_usage(settings.IZZY_DATA_DIR).free
            yield GaugeMetricFamily(DISK, SHARED[DISK], free)
