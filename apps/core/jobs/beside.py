"""A small thing that is done again and again in the database beside work that holds its thread."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import Error, connections

logger = logging.getLogger(__name__)


@contextmanager
def done_every(seconds: float, work: Callable[[], object], name: str) -> Iterator[None]:
    """Does it in a thread of that name while the block runs; the next time is as good where the database fails."""
    left = threading.Event()

    def repeat() -> None:
        while not left.wait(seconds):
            try:
                work()
            except Error as error:
                logger.warning("%s: the database failed: %s", name, error)
        connections.close_all()

    thread = threading.Thread(target=repeat, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        left.set()
        thread.join()
