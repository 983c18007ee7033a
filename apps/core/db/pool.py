"""Work on the database: in asynchronous code on one bounded pool of threads with connections of their own; done again where the
database called it off, in favour of another's or since the connection broke; and what the database refused, counted.

With one writer per user it is rare that work is called off: two transactions that hold rows of several users, or of the
instance, may wait for each other. Only what has committed nothing so far is done again.
"""

import asyncio
import logging
import random
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar, cast

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
)
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property

from apps.core.db.engines import SQLITE
from apps.core.db.troubles import sqlstate
from apps.core.metrics.base import counter

P = ParamSpec("P")
T = TypeVar("T")
logger = logging.getLogger(__name__)

CONNECTION_SECONDS = 60.0
"""A pool thread's connection is closed after this time, so that a replaced database is noticed."""
AWAY = (OperationalError, InterfaceError)
"""Errors of a connection, or of the database itself, whatever it was asked for."""
TRIES = 4
COLLISIONS = frozenset({"40001", "40P01", "23503", "23505"})
"""Of PostgreSQL: two that wait for each other, a row that is pointed to and gone, one that is there already."""
MADE_OR_REMOVED = ("FOREIGN KEY constraint failed", "UNIQUE constraint failed")
"""The same two of SQLite."""
WAIT_SECONDS = 0.05
"""Before the second try, about; three times as long before each further one: 0.6 s in all."""
AWAY_SECONDS = 15.0
"""So long what must not be lost is tried again while the database is away: about as long as a lease lasts."""
ERRORS = counter(
    "izzy_database_errors_total", "Errors of the database, by Django's name for their kind.", "kind"
)
RETRIES = counter(
    "izzy_database_retries_total", "Transactions begun again after the database refused them.", "reason"
)

_local = threading.local()
_generation = 0


def database_file() -> Path | None:
    """SQLite's file; None where the database is a server's."""
    name = settings.DATABASES["default"]["NAME"]
    return Path(name) if settings.DATABASES["default"]["ENGINE"] == SQLITE else None


async def in_db(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run one synchronous function, which does all its queries, on the database pool.

    The pool has IZZY_DB_THREADS threads; each hop costs about a millisecond, so make few. What the function
    raises is raised here. Cancelling the awaiting task does not stop a function that has begun: its
    transaction commits. One that collided, or whose connection broke, before it committed anything is called again.
    `async_to_sync` inside the function runs on the caller's event loop.
    """
    run = sync_to_async(_with_connection, thread_sensitive=False, executor=_pool())
    return await run(partial(function, *args, **kwargs))


async def through_outage(work: Callable[[], Awaitable[T]]) -> T:
    """The result of `work`, which is called again while the database is away, for AWAY_SECONDS. The connection may break when a commit
    has taken effect already: `work` sees to it that it takes effect once."""
    now = asyncio.get_running_loop().time
    until, pause = now() + AWAY_SECONDS, 0.1
    while True:
        try:
            return await work()
        except AWAY as error:
            if now() + pause > until:
                raise
            logger.warning("the database is away; it is asked again: %s", error)
        await asyncio.sleep(pause)
        pause = min(2 * pause, 1.0)


async def shielded(work: Awaitable[T]) -> T:
    """Awaits `work` to its end however often it is cancelled meanwhile: a transaction under way cannot be called back."""
    task, cancelled = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # looked at, so that asyncio does not report it: who was cancelled does not care
    raise cancelled


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=settings.IZZY_DB_THREADS, thread_name_prefix="izzy-db")


def _with_connection(function: Callable[[], T]) -> T:
    now = time.monotonic()
    opened, generation = getattr(_local, "opened", (0.0, -1))
    if generation != _generation or now - opened > CONNECTION_SECONDS:
        for connection in connections.all(initialized_only=True):
            connection.close()
        _local.opened = (now, _generation)
    try:
        return repeated(function)
    finally:
        for connection in connections.all(initialized_only=True):
            if connection.errors_occurred:
                connection.close()


def repeated(work: Callable[[], T]) -> T:
    """The result of `work`, which is called again after a collision or a broken connection as long as it has committed nothing;
    what it raises in the end. Synchronous."""
    if connection.in_atomic_block:
        return work()
    database = cast("Any", connection)
    for tried in range(1, TRIES):
        before, losses = database.commits, database.losses
        try:
            return work()
        except (DatabaseError, InterfaceError) as error:
            # Django replaces one that breaks within a block of a transaction by itself.
            lost = database.is_lost() or database.losses != losses
            if database.commits != before or not (lost or _has_collided(error)):
                raise
            RETRIES.add("lost connection" if lost else "collision")
            if lost:
                connection.close()
        time.sleep(WAIT_SECONDS * 3 ** (tried - 1) * random.uniform(0.5, 1.5))
    return work()


def _has_collided(error: Exception) -> bool:
    """Whether another transaction was in the way: looked at once more, what this one was to do is possible, or refused with its
    reason. So it is where another has removed a row that it points to, or made the one that it makes."""
    if isinstance(error, IntegrityError) and connection.vendor == "sqlite":
        return str(error).startswith(MADE_OR_REMOVED)
    return sqlstate(error) in COLLISIONS


def connections_renew() -> None:
    """Have every thread of the pool open its connection anew at its next use: the database is another one now."""
    global _generation
    _generation += 1


class CountsErrors:
    """A database wrapper whose errors are counted, and what it commits and loses."""

    commits = 0  # begun, of transactions and of statements that write outside one
    losses = 0  # connections that broke and were put away

    def is_lost(self) -> bool:
        """Whether the connection has broken; one that was never opened has not."""
        return False

    def _commit(self) -> None:
        self.commits += 1  # before: where it fails, nobody knows whether it took effect
        try:
            super()._commit()  # type: ignore[misc]
        except IntegrityError:
            self.commits -= 1  # refused: it did not
            raise

    @cached_property
    def wrap_database_errors(self) -> Any:
        return CountedErrors(self)


class CountedErrors(DatabaseErrorWrapper):
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc_type is None:
            return
        try:
            if isinstance(exc_value, UnicodeDecodeError) and connection.vendor == "sqlite":
                # Its message quotes a page that holds no text any more.
                raise DatabaseError("database disk image is malformed") from exc_value
            super().__exit__(exc_type, exc_value, traceback)
        except Exception as error:
            ERRORS.add(type(error).__name__)
            raise
