"""Leases: which process works on a row, for as long as it keeps saying that it does."""

import asyncio
import atexit
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import timedelta
from functools import cache, partial
from typing import Any, ClassVar
from uuid import UUID

from django.db import Error, models
from django.db.models import Q
from django.db.models.functions import Now

from apps.core.db.pool import in_db, shielded
from apps.core.db.prepared import Prepared, PreparedUpdate
from apps.core.db.writing import claim
from apps.core.jobs.beside import done_every

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=15)
EXTEND_SECONDS = 4.0
LEASE_END = Now() + LEASE  # of a lease that begins now, on the database's clock
RELEASED = {"runner": "", "lease_until": None}

PROCESS = f"{socket.gethostname()[:24]}-{os.getpid()}-{secrets.token_hex(4)}"
"""The name of this process in leases, in logs and toward other processes; new at every start."""


class LeaseLost(Exception):
    """The row is another process's by now, or gone: stop writing for it."""


class Leased(models.Model):
    """A row on which one process at a time works. All times are the database's, so that machines need not agree on theirs.

    A process that was away for longer than `LEASE` may find its row taken: what it writes for it goes through `lease_extend`.
    """

    runner = models.CharField(
        max_length=64, blank=True, default=""
    )  # the process; "" where it was given back
    lease_until = models.DateTimeField(null=True, blank=True)

    lease_only: ClassVar[Mapping[str, Any]] = {}  # what else holds of a row that may be taken
    lease_grows: ClassVar[Collection[str]] = ()  # numbers; each taking makes them higher

    class Meta:
        abstract = True

    @classmethod
    def lease_free(cls, prefix: str = "") -> Q:
        """Rows that no living process works on. A lease that reaches further ahead than any process writes it is from before
        the clock was set back. `prefix` leads from another table to the row (`conversation__`)."""
        until = f"{prefix}lease_until"
        over = Q(**{f"{until}__lt": Now()}) | Q(**{f"{until}__gt": Now() + 4 * LEASE})
        free = over | Q(**{f"{until}__isnull": True}) | Q(**{f"{prefix}runner": ""})
        return free & Q(**{f"{prefix}{name}": value for name, value in cls.lease_only.items()})

    @classmethod
    def lease_take(cls, key: UUID, runner: str = PROCESS, /, **values: Any) -> bool:
        """Whether the row is this process's now, of all that may try; sets `values` with it."""
        rows = cls._base_manager.filter(cls.lease_free() | Q(runner=runner), pk=key)
        with claim():  # its condition lets one through, whoever else tries
            return bool(rows.update(runner=runner, lease_until=LEASE_END, **values))

    @classmethod
    def lease_extend(cls, key: UUID, runner: str = PROCESS, /, **values: Any) -> None:
        """Sets `values` with it. Raises LeaseLost, also where a value of `lease_grows` is below the row's: it comes from before
        this process lost the row and took it again."""
        with claim():  # the row is nobody else's for as long as it has this runner
            if all(type(value) is int for value in values.values()):
                found = _extension(cls, tuple(values))(key, runner, *values.values())
            else:
                rows = cls._base_manager.filter(pk=key, runner=runner)
                found = rows.update(lease_until=LEASE_END, **values)
        if not found:
            raise LeaseLost(f"{cls.__name__} {key}")

    @classmethod
    def leases_extend(cls, keys: Collection[UUID], runner: str = PROCESS, /) -> set[UUID]:
        """Extends many leases; returns the rows that are not this process's, or gone."""
        with claim():
            held = _extensions(cls)(list(keys), runner)
        if held == len(keys):
            return set()
        rows = cls._base_manager.filter(pk__in=keys, runner=runner)
        return set(keys) - set(rows.values_list("pk", flat=True))

    @classmethod
    def lease_held(cls, key: UUID, runner: str = PROCESS, /) -> bool:
        """Whether the row is there and this process's."""
        return bool(_holding(cls)(key, runner))

    @classmethod
    def lease_release(cls, key: UUID | None = None, runner: str = PROCESS, /, **values: Any) -> None:
        """Gives the row back, without a key all that this process holds, setting `values` with it."""
        rows = cls._base_manager.filter(runner=runner)
        rows = rows if key is None else rows.filter(pk=key)
        with claim():  # as above
            rows.update(**RELEASED, **values)

    @classmethod
    @cache
    def release_at_exit(cls) -> None:
        """Once per process: an orderly end leaves the rows under way to the next one at once."""
        atexit.register(cls._release_all)

    @classmethod
    def _release_all(cls) -> None:
        try:
            cls.lease_release()
        except Error:
            logger.warning("the leases of this process run out by themselves", exc_info=True)

    @classmethod
    @asynccontextmanager
    async def lease_kept(cls, key: UUID, runner: str = PROCESS, /) -> AsyncIterator[None]:
        """Extends the lease for as long as the block runs. Where it is lost meanwhile, the block's next write says so."""
        task = asyncio.create_task(cls._keep(key, runner))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    @classmethod
    def leases_kept(
        cls, keys: Collection[UUID], runner: str = PROCESS, /
    ) -> AbstractContextManager[None]:
        """The same for work that holds its thread: another one extends these leases."""
        return done_every(EXTEND_SECONDS, partial(cls.leases_extend, list(keys), runner), "leases")

    @classmethod
    async def _keep(cls, key: UUID, runner: str) -> None:
        while True:
            await asyncio.sleep(EXTEND_SECONDS)
            try:
                # to its end: no extension may arrive after the block was left
                await shielded(in_db(cls.lease_extend, key, runner))
            except LeaseLost:
                return
            except Error as error:  # a busy database: there is time for another try
                logger.warning("a lease could not be extended: %s", error)


@cache
def _extension(kind: type[Leased], names: tuple[str, ...]) -> PreparedUpdate[...]:
    def extend(key: UUID, runner: str, *values: int) -> tuple[models.QuerySet[Any], dict[str, Any]]:
        new = dict(zip(names, values, strict=True))
        not_above = {f"{name}__lte": new[name] for name in names if name in kind.lease_grows}
        rows = kind._base_manager.filter(pk=key, runner=runner, **not_above)
        return rows, {"lease_until": LEASE_END, **new}

    return PreparedUpdate(extend, [UUID, str, *(int for _ in names)])


@cache
def _extensions(kind: type[Leased]) -> PreparedUpdate[...]:
    def extend(keys: list[UUID], runner: str) -> tuple[models.QuerySet[Any], dict[str, Any]]:
        rows = kind._base_manager.filter(pk__among=keys, runner=runner)
        return rows, {"lease_until": LEASE_END}

    return PreparedUpdate(extend)


@cache
def _holding(kind: type[Leased]) -> Prepared[..., UUID]:
    def held(key: UUID, runner: str) -> Any:
        return kind._base_manager.filter(pk=key, runner=runner).values_list("pk", flat=True)

    return Prepared(held, [UUID, str])
