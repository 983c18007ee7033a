"""Running the examples of versions that the assistant built before it was allowed what they need: as soon as the user has
allowed it, by themselves, in the worker."""

import asyncio
import logging
from datetime import timedelta
from functools import partial
from uuid import UUID

from apps.core.database import in_db, settled
from apps.core.errors import NotFound, Unavailable
from apps.core.jobs.background import Background

from .examples import failures_of
from .models import CapabilityVersion
from .selectors import versions_unproven
from .services.testing import version_claim, version_release, version_tested

logger = logging.getLogger(__name__)

SWEEP_EVERY = timedelta(seconds=2)
AT_ONCE = 4
"""Users whose versions are tested side by side, so that a slow one keeps no other waiting."""
REST = timedelta(minutes=1)
"""How long to wait where there is no sandbox."""


async def prove_all() -> None:
    """All that can be proved: those of one user one after the other, AT_ONCE users side by side, until none is left.
    Raises Unavailable."""
    busy: dict[UUID, asyncio.Task[None]] = {}
    try:
        while True:
            for version in await in_db(versions_unproven):
                if version.user_id not in busy and len(busy) < AT_ONCE:
                    busy[version.user_id] = asyncio.ensure_future(_prove(version))
            if not busy:
                return
            seconds = SWEEP_EVERY.total_seconds()
            await asyncio.wait(busy.values(), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            for user_id in [user_id for user_id, task in busy.items() if task.done()]:
                await busy.pop(user_id)
    finally:
        for task in busy.values():
            task.cancel()
        await asyncio.gather(*busy.values(), return_exceptions=True)


async def _prove(version: CapabilityVersion) -> None:
    """Runs the examples of an approved version and notes what came of it, unless another process is at it. Raises Unavailable
    where there is no sandbox: nothing is noted, and it is tried again later."""
    if not await in_db(partial(version_claim, version=version)):
        return
    tested = partial(version_tested, user_id=version.user_id, version_id=version.pk)
    try:
        failures = await failures_of(version.capability.name, version)
        await in_db(partial(tested, failures=failures))
    except NotFound:
        logger.info("a version was deleted while it was tested")
    except BaseException:
        await settled(in_db(partial(version_release, version=version)))
        raise


def _prove_waiting() -> timedelta | None:
    try:
        asyncio.run(prove_all())
    except Unavailable as error:
        logger.warning("capabilities wait to be tested: %s", error.message)
        return REST
    return None


prover = Background("testing capabilities", _prove_waiting)


def sweep() -> None:
    """The worker's sweep: wakes the thread where something waits."""
    if versions_unproven():
        prover.wake()
