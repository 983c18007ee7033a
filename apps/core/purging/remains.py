"""Clears what is left of deleted rows outside the apps' tables: in SQLite's file and its write-ahead log, and in Django's
own tables (the admin's log, the sessions).

Every connection of Izzy's runs with `secure_delete`: what is deleted is overwritten with zeros in its page at once. Two
kinds of remains are left: pages as they were before, in the write-ahead log until it is written back and cut to nothing
(checkpoint), and copies that a page kept of rows which moved to another page when it was split. The latter go when the
file is written anew (VACUUM), which holds up writers for its whole time.
"""

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.core.db.pool import database_file
from apps.core.db.sqlite.base import Turn
from apps.core.db.writing import LOCK_SECONDS
from apps.core.models import InstanceState
from apps.core.purging.places import PLACES
from apps.core.purging.trace import (
    MARKER,
    Hits,
    PurgePart,
    Trace,
    model_of,
    purge_parts,
    redact,
    rows_of,
)

logger = logging.getLogger(__name__)

STATE = "disk_scrub"
WAIT_SECONDS = 2.0  # how long the file's readers and writers are waited for; then the worker tries again


def scrub_request() -> None:
    """Have the disk cleaned of what has just been removed.

    Full text and the write-ahead log are cleaned at once; the file is written anew at once where it is small, else
    by the worker when nobody waits for an answer. Inside a transaction all is left to the worker.
    """
    _ask()
    if not connection.in_atomic_block:
        file = database_file()
        size = file.stat().st_size if file is not None and file.is_file() else 0
        _scrub(anew=size <= settings.IZZY_PURGE_VACUUM_MB * 1_000_000)


def sweep() -> None:
    """Sweep: write the file anew where somebody asked for it since the last time and nothing would be held up."""
    if _is_due(_state()) and not any(
        part.in_use() for part in purge_parts.values() if part.in_use is not None
    ):
        _scrub(anew=True)


def scrubbed_at(after: datetime | None) -> datetime | None:
    """When the disk was last cleaned, if that was after this moment; None while the worker has yet to do it."""
    state = _state()
    if after is None or "done" not in state:
        return None
    done = datetime.fromisoformat(state["done"])
    if max(after, done) > timezone.now():  # a clock set back since does not say which came first
        return None if _is_due(state) else done
    return done if done >= after else None


def _scrub(*, anew: bool) -> None:
    file = database_file()
    began, started, asked = timezone.now(), time.monotonic(), _asked(_state())
    try:
        for part in purge_parts.values():
            if part.before_disk is not None:
                part.before_disk()
    except OperationalError as error:
        logger.info("the disk is not clean yet: %s", error)
        return
    if file is None:
        if _vacuumed():
            _note(done=began.isoformat(), cleaned=asked)
            logger.info("the tables were cleaned in %.1f s", time.monotonic() - started)
    elif _write_back(file, anew=anew) and anew:
        _note(done=began.isoformat(), cleaned=asked)
        _write_back(file, anew=False)  # the note itself is a write: nothing of before may lie in the log
        logger.info("the disk was cleaned in %.1f s", time.monotonic() - started)


def _vacuumed() -> bool:
    """PostgreSQL: takes removed rows, and former versions of changed ones, out of the tables; False while a transaction is open
    that may still see them.

    A table of at most IZZY_PURGE_VACUUM_MB is written anew, which holds up its readers and writers for a moment. In a larger
    one, and in one that others do not let go of, the room is freed without being overwritten: later rows do that.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        (now,) = cursor.fetchone()
        patience = time.monotonic() + WAIT_SECONDS
        while _is_open(cursor, now):
            if time.monotonic() > patience:
                logger.info("the tables are not clean yet: a transaction of before is open")
                return False
            time.sleep(0.05)
        cursor.execute(_SIZES)
        sizes = dict(cursor.fetchall())
        cursor.execute(f"SET lock_timeout = '{WAIT_SECONDS:.0f}s'")
        try:
            for table in sorted(sizes):
                name = connection.ops.quote_name(table)
                if sizes[table] <= settings.IZZY_PURGE_VACUUM_MB * 1_000_000:
                    with suppress(OperationalError):
                        cursor.execute(f"VACUUM (FULL) {name}")
                        continue
                cursor.execute(f"VACUUM {name}")
        except OperationalError as error:
            logger.info("the tables are not clean yet: %s", error)
            return False
        finally:
            cursor.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
        return True


def _is_open(cursor: Any, moment: datetime) -> bool:
    """Whether a transaction goes on that began before the moment."""
    cursor.execute(_OPEN, [moment])
    return cursor.fetchone() is not None


_OPEN = (
    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    " AND backend_type = 'client backend' AND backend_xmin IS NOT NULL AND xact_start <= %s LIMIT 1"
)
_SIZES = (
    "SELECT relname, pg_table_size(oid) FROM pg_class"
    " WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname <> 'django_migrations'"
    " AND pg_relation_size(oid) > 0"
)


def _write_back(file: Path, *, anew: bool) -> bool:
    """Cut the write-ahead log, with `anew` once the file was written anew; False where others are in the way."""
    try:
        with (
            closing(Turn(str(file), WAIT_SECONDS)) as turn,
            closing(sqlite3.connect(file, timeout=WAIT_SECONDS, isolation_level=None)) as raw,
        ):
            turn.take()
            if anew:
                # The copy of a large database would not fit into memory.
                raw.executescript(
                    "PRAGMA secure_delete=ON; PRAGMA temp_store=FILE; PRAGMA synchronous=NORMAL; VACUUM"
                )
            cuts = (raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone() for _ in range(5))
            return any(not busy for busy, _, _ in cuts)
    except (sqlite3.OperationalError, OperationalError) as error:
        logger.info("the disk is not clean yet: %s", error)
        return False


def _state() -> dict[str, Any]:
    """How often it was `asked` to clean the disk, which of these times are `cleaned`, and when that was last `done`: a clock may be
    set back, a number is not."""
    return dict(InstanceState.objects.filter(key=STATE).values_list("value", flat=True).first() or {})


def _asked(state: dict[str, Any]) -> int:
    """How often; once where an earlier version has noted when it was `wanted`."""
    return int(state.get("asked", "wanted" in state))


def _is_due(state: dict[str, Any]) -> bool:
    return _asked(state) > int(state.get("cleaned", 0))


@transaction.atomic
def _ask() -> None:
    row, _ = InstanceState.objects.select_for_update().get_or_create(key=STATE)
    row.value = {**row.value, "asked": _asked(row.value) + 1}
    row.save()


@transaction.atomic
def _note(**values: Any) -> None:
    row, _ = InstanceState.objects.select_for_update().get_or_create(key=STATE)
    row.value = {**row.value, **values}
    row.save()


_FORGOTTEN = {"object_repr": MARKER, "change_message": ""}


def clear(trace: Trace, hits: Hits) -> None:
    """The log's entries about the purged rows keep what was done and when, not what the row said."""
    _entries(trace).update(**_FORGOTTEN)
    for session, data in _sessions(trace.user_id):
        if (cleaned := redact(data, trace)) != data:
            session.session_data = SessionStore().encode(cleaned)
            session.save(update_fields=["session_data"])


def _entries(trace: Trace) -> QuerySet[LogEntry]:
    """Admin log entries on the purged rows that say something yet; their user is the superuser, not the owner."""
    ids = [str(key) for key in trace.ids | trace.messages]
    return LogEntry.objects.filter(object_id__in=ids).exclude(**_FORGOTTEN)


def _sessions(user_id: UUID) -> Iterator[tuple[Session, dict[str, Any]]]:
    """The user's sessions, decoded: their data is packed and signed."""
    for session in Session.objects.iterator(chunk_size=200):
        data = session.get_decoded()
        if data.get("_auth_user_id") == str(user_id):
            yield session, data


def account_forget(user_id: UUID) -> int:
    """Before an account goes: the admin's log of its rows loses their words, its sessions end, the disk is cleaned."""
    changed = int(admin_log_forget(user_id))
    for session, _ in _sessions(user_id):
        session.delete()
        changed += 1
    transaction.on_commit(scrub_request)
    return changed


def admin_log_forget(user_id: UUID) -> bool:
    """The admin's log of an account's rows loses their words; whether it had any."""
    changed = 0
    for model in {model_of(column) for place in PLACES for column in place.columns} - {LogEntry}:
        entries = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(model))
        entries = entries.exclude(**_FORGOTTEN)
        if logged := set(entries.values_list("object_id", flat=True)):
            own = {str(pk) for pk in rows_of(model, user_id).values_list("pk", flat=True)}
            changed += entries.filter(object_id__in=logged & own).update(**_FORGOTTEN)
    return changed > 0


def _counts(trace: Trace) -> dict[str, int]:
    quoting = sum(redact(data, trace) != data for _, data in _sessions(trace.user_id))
    return {"admin.log": _entries(trace).count(), "sessions": quoting}


PURGING = PurgePart(clear=clear, counts=_counts)
