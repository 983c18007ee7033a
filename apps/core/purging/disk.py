"""Clears what is left of deleted rows on the disk: in SQLite's file and its write-ahead log.

Every connection of Izzy's runs with `secure_delete`: what is deleted is overwritten with zeros in its page at once. Two
kinds of remains are left: pages as they were before, in the write-ahead log until it is written back and cut to nothing
(checkpoint), and copies that a page kept of rows which moved to another page when it was split. The latter go when the
file is written anew (VACUUM), which holds up writers for its whole time.
"""

import logging
import sqlite3
import time
from contextlib import closing
from datetime import datetime

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from apps.core.db.base import Turn
from apps.core.db.pool import database_file
from apps.core.models import InstanceState
from apps.core.purging.places import purge_parts

logger = logging.getLogger(__name__)

STATE = "disk_scrub"
WAIT_SECONDS = 2.0  # how long the file's readers and writers are waited for; then the worker tries again


def scrub_request() -> None:
    """Have the disk cleaned of what has just been removed.

    Full text and the write-ahead log are cleaned at once; the file is written anew at once where it is small, else
    by the worker when nobody waits for an answer. Inside a transaction all is left to the worker.
    """
    _note(wanted=timezone.now())
    if not connection.in_atomic_block:
        size = database_file().stat().st_size if database_file().is_file() else 0
        _scrub(anew=size <= settings.IZZY_PURGE_VACUUM_MB * 1_000_000)


def sweep() -> None:
    """Sweep: write the file anew where somebody asked for it since the last time and nothing would be held up."""
    state = _state()
    if state.get("wanted", "") > state.get("done", "") and not any(part.in_use() for _, part in purge_parts):
        _scrub(anew=True)


def scrubbed_at() -> datetime | None:
    """When the disk was last cleaned."""
    done = _state().get("done")
    return datetime.fromisoformat(done) if done else None


def _scrub(*, anew: bool) -> None:
    if connection.vendor != "sqlite":
        return
    began, started = timezone.now(), time.monotonic()
    for _, part in purge_parts:
        part.before_disk()
    if _write_back(anew=anew) and anew:
        _note(done=began)
        _write_back(anew=False)  # the note itself is a write: nothing of before may lie in the log
        logger.info("the disk was cleaned in %.1f s", time.monotonic() - started)


def _write_back(*, anew: bool) -> bool:
    """Cut the write-ahead log, with `anew` once the file was written anew; False where others are in the way."""
    try:
        with (
            closing(Turn(str(database_file()))) as turn,
            closing(sqlite3.connect(database_file(), timeout=WAIT_SECONDS, isolation_level=None)) as raw,
        ):
            if not turn.take(WAIT_SECONDS):
                return False
            if anew:
                # The copy of a large database would not fit into memory.
                raw.executescript(
                    "PRAGMA secure_delete=ON; PRAGMA temp_store=FILE; PRAGMA synchronous=NORMAL; VACUUM"
                )
            cuts = (raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() for _ in range(5))
            return any(not busy for busy, _, _ in cuts)
    except sqlite3.OperationalError as error:
        logger.info("the disk is not clean yet: %s", error)
        return False


def _state() -> dict[str, str]:
    return dict(InstanceState.objects.filter(key=STATE).values_list("value", flat=True).first() or {})


@transaction.atomic
def _note(**moments: datetime) -> None:
    row, _ = InstanceState.objects.select_for_update().get_or_create(key=STATE)
    row.value = {**row.value, **{name: moment.isoformat() for name, moment in moments.items()}}
    row.save()
