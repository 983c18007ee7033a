"""What is left on the disk of rows that are gone, and how it is taken away: SQLite's file and its write-ahead log.

Every connection of Izzy's runs with `secure_delete`: what is deleted is overwritten with zeros in its page at once. Two
kinds of remains are left: pages as they were before, in the write-ahead log until it is written back and cut to nothing
(checkpoint), and copies that a page kept of rows which moved to another page when it was split. The latter go when the
file is written anew (VACUUM), which holds up writers for its whole time.
"""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from apps.core.models import InstanceState
from apps.core.registries import busy_checks, disk_cleaners
from apps.core.sqlite.turns import Turn

logger = logging.getLogger(__name__)

STATE = "disk_scrub"
WAIT_MS = 2000
"""How long the file's readers and writers are waited for; then the worker tries again."""
RETRIES = 5


def scrub_request() -> bool:
    """Have the disk cleaned of what has just been removed; returns whether it is done.

    Full text and the write-ahead log are cleaned at once; the file is written anew at once where it is small, else
    by the worker when nobody waits for an answer. Inside a transaction all is left to the worker.
    """
    _note(wanted=timezone.now())
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        return False
    if _size() <= settings.IZZY_PURGE_VACUUM_MB * 1_000_000:
        return _try()
    for _, clean in disk_cleaners:
        clean()
    _quietly(_checkpoint)
    return False


def sweep() -> None:
    """Sweep: write the file anew where somebody asked for it since the last time and nothing would be held up."""
    if is_wanted() and not any(is_busy() for _, is_busy in busy_checks):
        _try()


def is_wanted() -> bool:
    """Whether a cleaning is still to be done."""
    state = _state()
    return bool(state.get("wanted")) and state.get("wanted", "") > state.get("done", "")


def scrubbed_at() -> datetime | None:
    """When the disk was last cleaned."""
    done = _state().get("done")
    return datetime.fromisoformat(done) if done else None


def _try() -> bool:
    if connection.vendor != "sqlite":
        return False
    began, started = timezone.now(), time.monotonic()
    for _, clean in disk_cleaners:
        clean()
    if not _quietly(sqlite_scrub):
        return False
    _note(done=began)
    # The note itself is a write: the log is cut once more, so that nothing of before lies in it.
    _quietly(_checkpoint)
    logger.info("the disk was cleaned in %.1f s", time.monotonic() - started)
    return True


def _quietly(clean: Callable[[Path], bool]) -> bool:
    """Whether the file could be cleaned; where it is in use the worker tries again."""
    try:
        if clean(_path()):
            return True
    except sqlite3.OperationalError as error:
        logger.info("the disk is not clean yet: %s", error)
    return False


def sqlite_scrub(path: Path) -> bool:
    """Write a database file anew and cut its write-ahead log; False where readers were in the way."""
    with _alone(path) as raw:
        if raw is None:
            return False
        # The copy of a large database would not fit into memory.
        raw.executescript("PRAGMA secure_delete=ON; PRAGMA temp_store=FILE; PRAGMA synchronous=NORMAL;")
        raw.execute("VACUUM")
        return _cut(raw)


def _checkpoint(path: Path) -> bool:
    with _alone(path) as raw:
        return raw is not None and _cut(raw)


@contextmanager
def _alone(path: Path) -> Iterator[sqlite3.Connection | None]:
    """A connection while nobody else writes; None where others do not let us."""
    seconds = WAIT_MS / 1000
    with closing(Turn(str(path))) as turn:
        if not turn.take(seconds):
            yield None
            return
        with closing(sqlite3.connect(path, timeout=seconds, isolation_level=None)) as raw:
            yield raw


def _cut(raw: sqlite3.Connection) -> bool:
    for _ in range(RETRIES):
        busy, _, _ = raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not busy:
            return True
    return False


def _path() -> Path:
    return Path(str(connection.settings_dict["NAME"]))


def _size() -> int:
    path = _path()
    return path.stat().st_size if path.is_file() else 0


def _state() -> dict[str, str]:
    row = InstanceState.objects.filter(key=STATE).values_list("value", flat=True).first()
    return dict(row or {})


@transaction.atomic
def _note(**moments: datetime) -> None:
    row, _ = InstanceState.objects.select_for_update().get_or_create(key=STATE)
    row.value = {**row.value, **{name: moment.isoformat() for name, moment in moments.items()}}
    row.save()
