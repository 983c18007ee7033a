"""Database work from asynchronous code: one bounded pool of threads with connections of their own."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connections

from apps.core.db.engines import SQLITE
from apps.core.db.repeating import repeated

P = ParamSpec("P")
T = TypeVar("T")

CONNECTION_SECONDS = 60.0
"""A pool thread's connection is closed after this time, so that a replaced database is noticed."""

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


async def shielded(work: Awaitable[T]) -> T:
    """Awaits `work` to its end even when cancelled meanwhile: a transaction under way cannot be called back."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if not task.done():
            await asyncio.wait([task])
        if not task.cancelled():
            task.exception()  # looked at, so that asyncio does not report it: who was cancelled does not care
        raise


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


def connections_renew() -> None:
    """Have every thread of the pool open its connection anew at its next use: the database is another one now."""
    global _generation
    _generation += 1
