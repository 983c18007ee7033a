"""A thread that looks at every sandbox of this process every 50 ms and ends those beyond their limits.

A thread and not a task: a busy event loop must not give a tool time. It also starts the sandboxes' processes, since they
die with the thread that started them (PR_SET_PDEATHSIG), and this one lives as long as the server.
"""

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..base import ErrorCode, Limits, RunError
from . import processes

logger = logging.getLogger(__name__)

TICK_SECONDS = 0.05
SLOW_EVERY = 20
"""Looks between two at what changes slowly or costs more: the share of its sessions, which a tool may take back, and how
many pieces its memory is cut into."""
SHARING_FACTOR = 4
"""Above so many times the limit nobody asks which pages are shared."""
OVERHEAD_PROCESSES = 2
"""The runner and the kernel."""


@dataclass(eq=False)
class Watched:
    """A sandbox as the watchdog sees it. `init` is the first process of its namespaces, as the host numbers it; `on_breach`
    is called in the watchdog's thread and kills."""

    root: int
    limits: Limits
    on_breach: Callable[[RunError], None]
    niceness: int
    stands_back: bool = False
    looks: int = 0
    mapping_bytes: int = 0
    init: int = 0
    deadline: float = float("inf")

    def look(self, pids: list[int], now: float) -> None:
        """In the watchdog's thread, every `TICK_SECONDS`."""
        self.looks += 1
        slow = self.looks % SLOW_EVERY == 0
        if slow or not self.stands_back:
            self.stands_back = all(
                processes.session_stands_back(pid, self.niceness) for pid in (self.root, *pids)
            )
        if slow:
            counts = [processes.mappings(pid) for pid in pids]
            counted = max(counts, default=0) <= processes.MAPPINGS_MOST  # else nobody counts further
            self.mapping_bytes = (
                sum(counts) * processes.MAPPING_BYTES if counted else self.limits.memory_bytes + 1
            )
        if reason := self.breach(pids, now):
            self.on_breach(reason)

    def breach(self, pids: list[int], now: float) -> RunError | None:
        limits = self.limits
        if now > self.deadline:
            return RunError(
                ErrorCode.TIMED_OUT, f"It ran for more than {limits.wall_seconds:g} seconds."
            )
        if len(pids) > limits.processes + OVERHEAD_PROCESSES:
            message = f"It started more than {limits.processes} processes."
            return RunError(ErrorCode.LIMIT_EXCEEDED, message)
        used = sum(map(processes.private_bytes, pids))
        beside = self.mapping_bytes + (processes.socket_bytes(self.init) if self.init else 0)
        if limits.memory_bytes < used + beside and used < SHARING_FACTOR * limits.memory_bytes:
            used = sum(map(processes.proportional_bytes, pids))
        if used + beside > limits.memory_bytes:
            message = f"It used more than {limits.memory_bytes // 1_000_000} MB of memory."
            return RunError(ErrorCode.OUT_OF_MEMORY, message)
        if self.init and processes.inodes(self.init) > limits.files:
            message = f"It made more than {limits.files:,} files."
            return RunError(ErrorCode.LIMIT_EXCEEDED, message)
        return None


class Watchdog(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="sandbox watchdog", daemon=True)
        self._watched: set[Watched] = set()
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._table = processes.ProcessTable()

    def call(self, function: Callable[[], Any]) -> "Future[Any]":
        """Run it in this thread, at once."""
        future: Future[Any] = Future()
        self._work.put((function, future))
        return future

    def watch(self, watched: Watched) -> None:
        self._watched.add(watched)
        self._table.forget()

    def unwatch(self, watched: Watched) -> None:
        self._watched.discard(watched)

    def run(self) -> None:
        while True:
            until = time.monotonic() + TICK_SECONDS
            self._do_work(until if self._watched else None)
            try:
                self._tick()
            except Exception:  # without this thread nothing would be limited any more
                logger.exception("the sandbox watchdog stumbled")

    def _do_work(self, until: float | None) -> None:
        """Until the time is over; without one until there is something to watch."""
        while until is None or time.monotonic() < until:
            with contextlib.suppress(queue.Empty):
                timeout = None if until is None else max(0.0, until - time.monotonic())
                function, future = self._work.get(timeout=timeout)
                if future.set_running_or_notify_cancel():
                    try:
                        future.set_result(function())
                    except BaseException as error:  # noqa: BLE001  it belongs to whoever waits
                        future.set_exception(error)
            if until is None and self._watched:
                return

    def _tick(self) -> None:
        watched = list(self._watched)
        if not watched:
            return
        found = self._table.look(item.root for item in watched)
        now = time.monotonic()
        for item in watched:
            try:
                item.look(found[item.root], now)
            except Exception:  # whatever it is: the others must be looked at, and this one again
                logger.exception("the sandbox watchdog stumbled over one")


@cache
def watchdog() -> Watchdog:
    """This process's one; started when first asked for."""
    thread = Watchdog()
    thread.start()
    return thread
