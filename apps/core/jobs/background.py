"""Runs what a sweep must not wait for, in a thread that lives as long as there is something to do."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta

logger = logging.getLogger(__name__)

REST_AFTER_FAILURE = timedelta(minutes=1)


class Background:
    """Does `work` in a thread of its own, once at a time. `work` returns for how long to rest afterwards, None where
    there is no reason to; one that fails is logged and rests REST_AFTER_FAILURE."""

    def __init__(self, name: str, work: Callable[[], timedelta | None]) -> None:
        self.name = name
        self._work = work
        self._thread: threading.Thread | None = None
        self._rests_until = 0.0

    def start(self) -> None:
        """Begins, unless it is at work already or rests. Returns at once."""
        if time.monotonic() < self._rests_until or (self._thread and self._thread.is_alive()):
            return
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            rest = self._work()
        except Exception:
            # Whatever went wrong, the next sweep is to begin anew.
            logger.exception("%s failed; it is tried again in a minute", self.name)
            rest = REST_AFTER_FAILURE
        if rest is not None:
            self._rests_until = time.monotonic() + rest.total_seconds()
