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
from apps.core.jobs.fair import users_by_turns

from .examples import failures_of
from .models import CapabilityVersion
from .selectors import versions_unproven
from .services.testing import version_tested

logger = logging.getLogger(__name__)

SWEEP_EVERY = timedelta(seconds=2)
REST = timedelta(minutes=1)
"""How long to wait where there is no sandbox."""


async def prove_all() -> None:
    """All that can be proved: those of one user one after the other, users side by side, until none is left. Raises
    Unavailable."""

    async def due() -> dict[UUID, CapabilityVersion]:
        oldest: dict[UUID, CapabilityVersion] = {}
        for version in await in_db(versions_unproven):
            oldest.setdefault(version.user_id, version)
        return oldest

    await users_by_turns(due, _prove)


async def _prove(version: CapabilityVersion) -> None:
    """Runs the examples of an approved version and notes what came of it, unless another process is at it. Raises Unavailable
    where there is no sandbox: nothing is noted, and it is tried again later."""
    if not await in_db(CapabilityVersion.lease_take, version.pk):
        return
    try:
        async with CapabilityVersion.lease_kept(version.pk):
            failures = await failures_of(version.capability.name, version)
        tested = partial(version_tested, user_id=version.user_id, version_id=version.pk)
        await in_db(tested, failures=failures)
    except NotFound:
        logger.info("a version was deleted while it was tested")
    finally:
        await settled(in_db(CapabilityVersion.lease_release, version.pk))


def _prove_waiting() -> timedelta | None:
    try:
        asyncio.run(prove_all())
    except Unavailable as error:
        logger.warning("capabilities wait to be tested: %s", error.message)
        return REST
    return None


prover = Background("testing capabilities", _prove_waiting)


def sweep() -> None:
    """The worker's sweep: starts the thread where something waits."""
    if versions_unproven():
        prover.start()
