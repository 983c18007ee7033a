"""Where the processes of one machine keep their figures, so that any web process can show those of all.

Each process counts in memory-mapped files of its own, in `metrics/<boot>/` of the data directory: `prometheus_client`'s
multi-process mode. What processes that ended have counted stays until the last one has ended. Processes in containers of one
machine share the folder through their volume; another machine, or another boot, has another.
"""

import fcntl
import logging
import os
import secrets
import shutil
import socket
import threading
import time
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from django.conf import settings

from apps.core.metrics.base import Figure, use
from apps.core.private import private

logger = logging.getLogger(__name__)

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
ALIVE = "alive_"
"""A process holds the lock on its file of this name for as long as it lives."""
FILES_KEPT = 100
"""Files of processes that ended, above which the oldest go: a worker that dies every minute must not fill the disk."""
FOREIGN_DAYS = 30
_lock = threading.Lock()
_opened = False
_held: int | None = None
registry: Any = None
"""prometheus_client's registry of this process alone: what is shown where the folder cannot be written."""


def folder() -> Path:
    """The folder of this machine since it was booted."""
    try:
        boot = BOOT_ID.read_text().strip()
    except OSError:
        boot = socket.gethostname()
    return Path(settings.IZZY_DATA_DIR) / "metrics" / boot


def metrics_open() -> None:
    """Counts from now on; harmless where that is so already. Takes some 30 ms of CPU, once in a process."""
    global _opened
    if _opened:
        return
    with _lock:
        if not _opened:
            _open()
            _opened = True


def is_shared() -> bool:
    """Whether the figures of the other processes can be read as well."""
    return _held is not None


def metrics_close() -> None:
    """Counts no more, and counts as ended; the next `metrics_open` begins anew."""
    global _opened, _held, registry
    with _lock:
        use(None)
        if _held is not None:
            os.close(_held)
        _opened, _held, registry = False, None, None


def _open() -> None:
    global _held, registry
    from prometheus_client import CollectorRegistry, metrics

    values: Any = import_module("prometheus_client.values")
    name = f"{os.getpid()}-{secrets.token_hex(4)}"
    registry = CollectorRegistry()
    try:
        _held = _join(folder(), name)
    except OSError as error:
        logger.warning("this process counts for itself: %s: %s", folder(), error.strerror or error)
        values.ValueClass = values.MutexValue
    else:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(folder())
        values.MmapedDict = _room_first(values.MmapedDict)
        values.ValueClass = values.MultiProcessValue(lambda: name)
    kinds = {"counter": metrics.Counter, "histogram": metrics.Histogram, "gauge": metrics.Gauge}

    def make(figure: Figure) -> Any:
        options: dict[str, Any] = {"registry": registry}
        if figure.kind == "histogram":
            options["buckets"] = figure.buckets
        if figure.kind == "gauge":
            options["multiprocess_mode"] = "livesum"
        return kinds[figure.kind](figure.name, figure.help, figure.labels, **options)

    use(make)


def _room_first(base: type[Any]) -> type[Any]:
    """`prometheus_client`'s file, its room on the disk taken before it is written: a page that has none on a full disk ends
    the process that writes it (SIGBUS), where this raises OSError."""
    if base.__name__ == "RoomFirst":
        return base

    class RoomFirst(base):  # type: ignore[misc]
        def __init__(self, filename: str, read_mode: bool = False) -> None:
            if not read_mode:
                _make_file(Path(filename))
            super().__init__(filename, read_mode)

        def _init_value(self, key: str) -> None:
            if self._used + len(key.encode()) + 64 > self._capacity:
                os.posix_fallocate(self._f.fileno(), 0, self._capacity * 2)
            super()._init_value(key)

    return RoomFirst


FIRST_BYTES = 1 << 16


def _make_file(file: Path) -> None:
    """An empty one, under its name only once it has its size: who scrapes meanwhile reads all that have."""
    part = file.with_suffix(".new")
    try:
        with open(part, "wb", opener=private) as opened:
            os.posix_fallocate(opened.fileno(), 0, FIRST_BYTES)
        part.rename(file)
    finally:
        part.unlink(missing_ok=True)


def _join(place: Path, name: str) -> int:
    """Makes the folder, clears away what nobody needs, and returns the descriptor that says that this process lives."""
    for made in (place.parent, place):
        made.mkdir(mode=0o700, exist_ok=True)
    with open(place / "lock", "w", opener=private) as door:
        fcntl.flock(
            door, fcntl.LOCK_EX
        )  # one at a time: who comes first must not be cleared away by who comes next
        others = bury(place)
        found = sorted(place.glob("*.db"), key=partial(_modified))
        for file in found if not others else found[: max(0, len(found) - FILES_KEPT - 3 * others)]:
            file.unlink(missing_ok=True)
        for other in place.parent.iterdir():
            if other != place and time.time() - _newest(other) > FOREIGN_DAYS * 86400:
                shutil.rmtree(other, ignore_errors=True)
        held = os.open(place / f"{ALIVE}{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(held, fcntl.LOCK_EX)
    return held


def bury(place: Path) -> int:
    """Removes the gauges of processes that have ended; returns how many live."""
    living = 0
    for file in place.glob(f"{ALIVE}*"):
        with suppress(FileNotFoundError), file.open("r+") as other:
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                living += 1
                continue
            for gauges in place.glob(f"gauge_live*_{file.name.removeprefix(ALIVE)}.db"):
                gauges.unlink(missing_ok=True)
            file.unlink(missing_ok=True)
    return living


def _modified(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _newest(place: Path) -> float:
    return max((_modified(file) for file in [place, *place.glob("*")]), default=0.0)
