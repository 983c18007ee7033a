"""A run's row is held by the process that runs it: for a few seconds at a time, so that it shows soon when that is gone."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from django.db import DatabaseError

from apps.core.database import in_db

from .models import Execution
from .services.runs import execution_hold

logger = logging.getLogger(__name__)

HOLD_EVERY_SECONDS = 4.0


@asynccontextmanager
async def held(execution: Execution) -> AsyncIterator[None]:
    """As long as the block runs, waiting for a place and installing included."""
    holding = asyncio.create_task(_hold(execution))
    try:
        yield
    finally:
        holding.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await holding


async def _hold(execution: Execution) -> None:
    while True:
        await asyncio.sleep(HOLD_EVERY_SECONDS)
        try:
            await in_db(execution_hold, execution=execution)
        except (
            DatabaseError
        ) as error:  # a busy database: the next time, and a late result counts all the same
            logger.warning("a run could not be held: %s", error)
