"""Running the stored examples of a version: when it is asked for, and in the worker as soon as the user has allowed what they need."""

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from uuid import UUID

from apps.capabilities.catalog.files import CapabilityRefused
from apps.capabilities.catalog.lifecycle import version_tested
from apps.capabilities.catalog.selectors import capability_get, versions_unproven
from apps.capabilities.models import CapabilityVersion, Execution, Trigger
from apps.capabilities.runs.execution import Place, capability_execute, runnable_version
from apps.core.db.pool import in_db, settled
from apps.core.errors import IzzyError, NotFound, Unavailable
from apps.core.jobs.fair import users_by_turns
from apps.core.jobs.worker import Background

QUOTED = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """`failures` has a sentence for each example that did not give what it should; `tried` is how many there are."""

    name: str
    version: int
    tried: int
    failures: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.failures


async def capability_retest(*, user_id: UUID, name: str) -> Tested:
    """Runs every stored example of the version that is current now, each in a fresh sandbox, and notes on it what came of
    them, whatever becomes current meanwhile.

    Raises NotFound, and Unavailable where there is no sandbox: then nothing is noted. One that may not run (disabled, not
    approved, …) fails without being tried, and nothing is noted either: it is not the version's fault.
    """
    capability = await in_db(capability_get, user_id, name)
    version = capability.current
    if version is None or not version.examples:
        return Tested(name=capability.name, version=version.number if version else 0, tried=0, failures=())
    try:
        runnable_version(capability)
    except CapabilityRefused as error:
        return Tested(name=capability.name, version=version.number, tried=0, failures=(error.message,))
    failures = tuple(await failures_of(capability.name, version))
    await in_db(partial(version_tested, user_id=user_id, version_id=version.pk, failures=list(failures)))
    return Tested(
        name=capability.name, version=version.number, tried=len(version.examples), failures=failures
    )


async def failures_of(name: str, version: CapabilityVersion) -> list[str]:
    """A sentence for each example that does not give what it should; a refusal to run (tampered, a missing secret) counts as
    one. Raises NotFound, Unavailable."""
    failures: list[str] = []
    for place, example in enumerate(version.examples, 1):
        problem = await _try(name, version, example)
        if problem:
            failures.append(f"Example {place}: {problem}")
    return failures


async def _try(name: str, version: CapabilityVersion, example: dict[str, object]) -> str:
    """The problem with one example, "" for none."""
    args = example["input"]
    try:
        execution = await capability_execute(
            user_id=version.user_id,
            name=name,
            args=args if isinstance(args, dict) else {},
            place=Place(trigger=Trigger.RETEST),
            number=version.number,
        )
    except (NotFound, Unavailable):
        raise
    except IzzyError as error:
        return error.message
    return problem_of(execution, example.get("expect"))


def problem_of(execution: Execution, expect: object) -> str:
    """Why a run is not what an example says, "" where it is."""
    if execution.state != Execution.State.OK:
        said = execution.error_message.strip().splitlines()
        return f"{execution.error_code}: {said[-1][:QUOTED] if said else 'no message'}"
    if isinstance(expect, str) and expect not in execution.result:
        return f"expected {expect[:QUOTED]!r}, got {execution.result[:QUOTED]!r}"
    return ""


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
