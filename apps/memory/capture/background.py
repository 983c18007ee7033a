"""The worker's reader: a thread with an event loop of its own, started by a sweep, so that no sweep waits."""

import asyncio
import atexit
import logging
from datetime import timedelta
from functools import cache
from uuid import UUID

from django.db import Error as DatabaseFailure
from django.utils import timezone

from apps.agent.endpoint import current_endpoint
from apps.core.database import in_db
from apps.core.jobs.background import Background
from apps.core.jobs.fair import AT_ONCE, users_by_turns
from apps.memory.models import CaptureLease

from . import claims
from .reader import Tally, has_model, user_read

logger = logging.getLogger(__name__)

SWEEP_EVERY = timedelta(seconds=2)
IN_A_ROW = 5
"""Windows of one user before it is another's turn."""


async def users_read(users: list[UUID], *, any_time: bool = False) -> Tally:
    """Reads the windows of these users, AT_ONCE at a time; what came of it in all."""
    tally, room = Tally(), asyncio.Semaphore(AT_ONCE)

    async def one(user_id: UUID) -> None:
        async with room:
            await user_read(user_id, tally, any_time=any_time)

    await asyncio.gather(*(one(user_id) for user_id in users))
    return tally


async def windows_read() -> Tally:
    """Reads everything that is due, of all users, and what becomes due meanwhile; nothing without a model, and no more once its
    server is at fault. Users take turns, IN_A_ROW windows each."""
    tally = Tally()

    async def due() -> dict[UUID, UUID]:
        if tally.server_down_for is not None:
            return {}
        return {user_id: user_id for user_id in await in_db(claims.users_due, timezone.now())}

    if await has_model():
        await users_by_turns(due, lambda user_id: user_read(user_id, tally, most=IN_A_ROW))
    return tally


def read_due() -> timedelta | None:
    """Reads all that is due; after the server's fault, for how long to leave it alone."""
    return asyncio.run(windows_read()).server_down_for


reader = Background("reading conversations", read_due)


def sweep() -> None:
    """The worker's sweep: starts the reader where a window is due and a model is connected."""
    if claims.users_due(timezone.now(), limit=1) and not current_endpoint().is_offline:
        _release_at_exit()
        reader.start()


@cache
def _release_at_exit() -> None:
    """Once per process: an orderly end gives the windows under way to the next reader at once."""
    atexit.register(_release)


def _release() -> None:
    try:
        CaptureLease.lease_release()
    except DatabaseFailure:
        logger.warning("the leases of this process run out by themselves", exc_info=True)
