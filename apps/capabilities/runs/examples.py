"""Running the stored examples of a version: when it is asked for, and in the worker as soon as the user has allowed what they need."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from apps.capabilities.catalog.files import CapabilityRefused
from apps.capabilities.catalog.lifecycle import version_tested
from apps.capabilities.catalog.selectors import capability_get, versions_unproven
from apps.capabilities.models import CapabilityVersion, Execution, Trigger
from apps.capabilities.runs.execution import RunOrigin, capability_execute, runnable_version
from apps.core.db.pool import in_db, shielded
from apps.core.db.writing import writing_for
from apps.core.errors import Conflict, IzzyError, NotFound, Unavailable
from apps.core.jobs.fair import users_by_turns
from apps.core.jobs.leases import PROCESS
from apps.core.jobs.worker import Background

logger = logging.getLogger(__name__)

QUOTED = 600
SWEEP_EVERY = timedelta(seconds=2)
REST = timedelta(minutes=1)  # to wait where there is no sandbox


@dataclass(frozen=True, slots=True)
class Tested:
    """`failures` has a sentence for each example that did not give what it should; `tried` is how many there are."""

    version: int
    tried: int = 0
    failures: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.failures


async def capability_retest(*, user_id: UUID, name: str) -> Tested:
    """Runs every stored example of the version that is current now, each in a fresh sandbox, and notes on it what came of
    them, whatever becomes current meanwhile.

    Raises NotFound, Conflict (`being_tested`) and Unavailable where there is no sandbox: then nothing is noted. One that may not run (disabled, not
    approved, …) fails without being tried, and nothing is noted either: it is not the version's fault.
    """
    capability = await in_db(capability_get, user_id, name)
    version = capability.current
    if version is None or not version.examples:
        return Tested(version.number if version else 0)
    try:
        runnable_version(capability)
    except CapabilityRefused as error:
        return Tested(version.number, failures=(error.message,))
    async with _held(version) as held:
        if not held:
            message = (
                f"The examples of {capability.name} are being tested right now. Look again in a moment."
            )
            raise Conflict(message, code="being_tested")
        failures = await failures_of(capability.name, version)
        await in_db(version_tested, user_id=user_id, version_id=version.pk, failures=failures)
    return Tested(version.number, len(version.examples), tuple(failures))


@asynccontextmanager
async def _held(version: CapabilityVersion) -> AsyncIterator[bool]:
    """Whether nobody else tests the version, also in this process; none does until the block ends."""
    runner = f"{PROCESS}-{secrets.token_hex(4)}"
    if not await in_db(CapabilityVersion.lease_take, version.pk, runner):
        yield False
        return
    try:
        async with CapabilityVersion.lease_kept(version.pk, runner):
            yield True
    finally:
        await shielded(in_db(CapabilityVersion.lease_release, version.pk, runner))


async def failures_of(name: str, version: CapabilityVersion) -> list[str]:
    """A sentence for each example that does not give what it should; a refusal to run (tampered, a missing secret) counts as
    one. Raises NotFound, Unavailable."""
    passed_before = version.tested_at is not None and not version.test_failures
    failures: list[str] = []
    for place, example in enumerate(version.examples, 1):
        args = example["input"]
        try:
            execution = await capability_execute(
                user_id=version.user_id,
                name=name,
                args=args if isinstance(args, dict) else {},
                origin=RunOrigin(trigger=Trigger.RETEST),
                number=version.number,
            )
        except (NotFound, Unavailable):
            raise
        except IzzyError as error:
            problem = error.message
        else:
            problem = result_problem(execution.result, example.get("expect"), empty_passes=passed_before)
            if execution.state != Execution.State.OK:
                *_, said = ["no message", *execution.error_message.strip().splitlines()]
                problem = f"{execution.error_code}: {said[:QUOTED]}"
        if problem:
            failures.append(f"Example {place}: {problem}")
    return failures


def result_problem(result: str, expect: object, *, empty_passes: bool = False) -> str:
    """Why a result is not what an example expects, "" where it is: the one rule for builds and later tests. The result holds
    the expected text; an empty one passes where that is "" alone, or with `empty_passes`, for versions that have passed
    before."""
    if isinstance(expect, str):
        passes = expect in result if expect else not result.strip()
        return "" if passes else f"expected {expect[:QUOTED]!r}, got {result[:QUOTED]!r}"
    if result.strip() or empty_passes:
        return ""
    return "its result is empty: run must return text that tells the user something, unless expect is empty as well"


async def versions_test() -> None:
    """Tests all that can be: those of one user one after the other, users side by side, until none is left. Raises
    Unavailable."""

    async def due() -> dict[UUID, CapabilityVersion]:
        oldest: dict[UUID, CapabilityVersion] = {}
        for version in await in_db(versions_unproven):
            oldest.setdefault(version.user_id, version)
        return oldest

    await users_by_turns(due, version_test)


async def version_test(version: CapabilityVersion) -> None:
    """Runs the examples of an approved version and notes what came of it, unless another process is at it. Raises Unavailable
    where there is no sandbox: nothing is noted, and it is tried again later."""
    user_id = version.user_id
    with writing_for(user_id):
        async with _held(version) as held:
            if not held or not await in_db(_is_untested, version):
                return
            try:
                failures = await failures_of(version.capability.name, version)
                await in_db(version_tested, user_id=user_id, version_id=version.pk, failures=failures)
            except NotFound:
                logger.info("a version was deleted while it was tested")


def _is_untested(version: CapabilityVersion) -> bool:
    rows = CapabilityVersion.objects.for_user(version.user_id)
    return rows.filter(pk=version.pk, tested_at=None).exists()


def _work() -> timedelta | None:
    try:
        asyncio.run(versions_test())
    except Unavailable as error:
        logger.warning("capabilities wait to be tested: %s", error.message)
        return REST
    return None


tester = Background("testing capabilities", _work)


def sweep() -> None:
    """Starts the thread where something waits; the worker's sweep."""
    if versions_unproven():
        tester.start()
