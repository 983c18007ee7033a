"""Repeating the stored examples of a version: does it still do what it did?"""

from dataclasses import dataclass
from functools import partial
from uuid import UUID

from apps.core.database import in_db
from apps.core.errors import IzzyError, NotFound, Unavailable

from .execution import capability_execute
from .models import Capability, Execution, Trigger
from .selectors import capability_get
from .services.runs import Place
from .services.testing import version_tested

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
    """Runs every stored example of the current version, each in a fresh sandbox, and notes on it what came of them.

    Raises NotFound, and Unavailable where there is no sandbox: then nothing is noted, nor where the user has yet to approve
    the version. A refusal to run (disabled, not approved, tampered, …) counts as a failure.
    """
    capability = await in_db(capability_get, user_id, name)
    version = capability.current
    if version is None:
        return Tested(name=capability.name, version=0, tried=0, failures=())
    failures = await failures_of(capability, version.examples)
    if version.is_approved:
        await in_db(partial(version_tested, user_id=user_id, version_id=version.pk, failures=failures))
    return Tested(
        name=capability.name, version=version.number, tried=len(version.examples), failures=tuple(failures)
    )


async def failures_of(
    capability: Capability, examples: list[dict[str, object]], *, number: int | None = None
) -> list[str]:
    """A sentence for each example that does not give what it should, of the current version or of another. Raises
    NotFound, Unavailable."""
    failures: list[str] = []
    for place, example in enumerate(examples, 1):
        problem = await _try(capability, example, number)
        if problem:
            failures.append(f"Example {place}: {problem}")
    return failures


async def _try(capability: Capability, example: dict[str, object], number: int | None) -> str:
    """What went wrong with one example, "" for nothing."""
    args = example["input"]
    try:
        execution = await capability_execute(
            user_id=capability.user_id,
            name=capability.name,
            args=args if isinstance(args, dict) else {},
            place=Place(trigger=Trigger.RETEST),
            number=number,
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
