"""Several threads, each with a connection of its own, which begin at the same moment."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

from django.db import connections

from tests.waiting import PATIENCE

T = TypeVar("T")


def at_once(works: Sequence[Callable[[], T]]) -> list[T]:
    """Returns what each of them gave, in their order; what one raises is raised."""
    begin = Barrier(len(works))

    def run(work: Callable[[], T]) -> T:
        begin.wait(PATIENCE)
        try:
            return work()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))
