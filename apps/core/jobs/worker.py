"""The background worker: sweeps, the heartbeat, builds and what else apps register, each in a thread of its own.

Rows are the queue: a sweep finds again whatever a crash left undone.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Protocol

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connections
from django.db.models import Q
from django.utils import timezone

from apps.core.db.troubles import log_failure
from apps.core.health import CheckResult
from apps.core.jobs.leases import PROCESS
from apps.core.jobs.parent_watch import beat_for_ever
from apps.core.log_ids import log_activity, log_ids
from apps.core.metrics.base import counter, histogram
from apps.core.metrics.processes import metrics_open
from apps.core.models import InstanceState
from apps.core.traces import traces_close, traces_open

HEARTBEAT = "worker"  # begins the key of each worker's row
HEARTBEAT_EVERY = timedelta(seconds=10)
HEARTBEAT_MISSED = timedelta(seconds=60)
TICK_SECONDS = 0.5
WORTH_A_LINE = 0.5
"""Seconds from which on a job that ended has a line in the log: most find nothing to do."""
SWEEPS = histogram("izzy_job_seconds", "Time of a sweep or background job of the worker.", "job")
FAILURES = counter("izzy_job_failures_total", "Sweeps and background jobs that failed.", "job")
NICENESS = 10  # replies in the chat go before all background work, sandboxes of builds included


@dataclass(frozen=True, slots=True)
class Sweep:
    name: str
    function: Callable[[], object]
    every: timedelta


_sweeps: dict[str, Sweep] = {}


def register_sweep(name: str, function: Callable[[], object], every: timedelta) -> None:
    """Have the worker call `function` (synchronous, idempotent, quick when nothing is due) every so often.

    It runs first right after the worker's start. What it raises is logged and does not stop the others.
    Registering a name again replaces it.
    """
    _sweeps[name] = Sweep(name, function, every)


def sweeps() -> list[Sweep]:
    return sorted(_sweeps.values(), key=lambda sweep: sweep.name)


class BackgroundService(Protocol):
    """Begins with `start`, which returns at once, and has ended when `stop` returns."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class SweepThread(threading.Thread):
    """Runs each sweep when it is due, one after the other. A sweep that fails is logged and tried again next time."""

    def __init__(self) -> None:
        super().__init__(name="sweeps", daemon=True)
        self._stopping = threading.Event()
        self._due: dict[str, float] = {}

    def run(self) -> None:
        while not self._stopping.is_set():
            for sweep in sweeps():
                if not self._stopping.is_set() and time.monotonic() >= self._due.get(sweep.name, 0.0):
                    self.run_sweep(sweep)
            self._stopping.wait(TICK_SECONDS)
        connections.close_all()

    def run_sweep(self, sweep: Sweep) -> None:
        close_old_connections()
        with log_ids(job=sweep.name), SWEEPS.timed(sweep.name):
            begun = time.monotonic()
            try:
                sweep.function()
            except Exception as error:  # noqa: BLE001  it is logged
                FAILURES.add(sweep.name)
                log_failure(error, f"sweep {sweep.name} failed")
            finally:
                close_old_connections()
                self._due[sweep.name] = time.monotonic() + sweep.every.total_seconds()
                _job_ended(sweep.name, time.monotonic() - begun)

    def stop(self, timeout: float = 5.0) -> None:
        self._stopping.set()
        self.join(timeout)


def stand_back() -> None:
    """Has this process, and what it starts, wait for others where the processor is short."""
    os.nice(max(0, NICENESS - os.nice(0)))


def run_worker(*services: BackgroundService) -> None:
    """Runs sweeps and these services until SIGTERM or SIGINT, then ends them in order; a second one ends the process at once."""
    metrics_open()
    traces_open("worker")
    beside: list[BackgroundService] = [SweepThread(), *services]
    for service in beside:
        service.start()
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _on_signal)
        beat_for_ever()
    finally:
        for service in reversed(beside):
            service.stop()
        _beat_ends()
        traces_close()


def _on_signal(number: int, frame: FrameType | None) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_DFL)
    sys.exit(0)


def beat() -> None:
    """Sweep: say that the worker lives, also to those who look at IZZY_HEARTBEAT_FILE."""
    if settings.IZZY_HEARTBEAT_FILE:
        Path(settings.IZZY_HEARTBEAT_FILE).touch()
    InstanceState.objects.update_or_create(key=_own_key(), defaults={"value": {"pid": os.getpid()}})
    old = Q(updated_at__lt=timezone.now() - HEARTBEAT_MISSED)
    missed = InstanceState.objects.filter(old | _ahead(), key__startswith=HEARTBEAT)
    if missed.exists():  # those of workers that ended without a word
        missed.delete()


def _beat_ends() -> None:
    """Says that this worker has ended, to be known before its last beat is old."""
    try:
        InstanceState.objects.filter(key=_own_key()).delete()
    except DatabaseError as error:
        log_failure(error, "the worker ends without saying so")


def _own_key() -> str:
    return f"{HEARTBEAT}:{PROCESS}"


def _ahead() -> Q:
    """A beat from before the clock was set back: a worker that lives has beaten since."""
    return Q(updated_at__gt=timezone.now() + HEARTBEAT_MISSED)


def last_beat() -> datetime | None:
    """When a worker that has not ended in order was last seen."""
    beats = InstanceState.objects.filter(~_ahead(), key__startswith=HEARTBEAT)
    return beats.order_by("-updated_at").values_list("updated_at", flat=True).first()


def check_worker() -> CheckResult:
    """Health check: a worker has beaten within the last minute, and has not ended since."""
    beaten = last_beat()
    hint = "Start Izzy with `manage.py serve`, or a worker alone with `manage.py worker`."
    if beaten is None:
        return CheckResult(False, "The background worker is not running.", hint)
    if timezone.now() - beaten > HEARTBEAT_MISSED:
        return CheckResult(
            False, f"The background worker was last seen at {beaten:%Y-%m-%d %H:%M} UTC.", hint
        )
    return CheckResult(True, "The background worker is running.")


def _job_ended(name: str, seconds: float) -> None:
    if seconds >= WORTH_A_LINE:
        log_activity("job", f"{name} ended", took_ms=round(seconds * 1000))


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
        with log_ids(job=self.name), SWEEPS.timed(self.name):
            begun = time.monotonic()
            try:
                rest = self._work()
            except Exception as error:  # noqa: BLE001  it is logged
                # Whatever went wrong, the next sweep is to begin anew.
                FAILURES.add(self.name)
                log_failure(error, f"{self.name} failed; it is tried again in a minute")
                rest = REST_AFTER_FAILURE
            finally:
                connections.close_all()  # those of this thread, which nobody else gives back
            _job_ended(self.name, time.monotonic() - begun)
        if rest is not None:
            self._rests_until = time.monotonic() + rest.total_seconds()
