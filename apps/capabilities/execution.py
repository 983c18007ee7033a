"""Running a capability: checks, a fresh sandbox, and the row that says what came of it."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.accounts.secrets import secret_get, secret_values
from apps.agent.scrub import Scrubber
from apps.core.database import in_db
from apps.core.errors import InvalidInput

from .drafts import MAIN, REQUIREMENTS
from .files import files_verified
from .models import Capability, CapabilityVersion, Execution, Status, Trigger
from .refusals import refused
from .sandbox import current_backend, run_capability
from .sandbox.base import (
    ErrorCode,
    Outcome,
    Progress,
    Purpose,
    RunError,
    SandboxSpec,
    SandboxUnavailable,
)
from .schemas import input_error
from .selectors import capability_get, secrets_missing, version_get
from .services.runs import Place, execution_begin, execution_discard, execution_finish


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """A run that passed all checks."""

    execution: Execution
    files: Mapping[str, str]
    spec: SandboxSpec
    scrubber: Scrubber
    backend: str


async def capability_execute(
    *,
    user_id: UUID,
    name: str,
    args: dict[str, Any],
    place: Place | None = None,
    progress: Progress | None = None,
    number: int | None = None,
) -> Execution:
    """Runs the current version of a capability in a fresh sandbox and returns the finished row; with `number` that
    version, which is to be tested.

    Raises NotFound; CapabilityRefused (`building`, `failed`, `disabled`, `not_approved`, `missing_secret`, `tampered`);
    InvalidInput (`bad_input`); SandboxUnavailable. Whatever the tool does wrong is in the row. Cancelling kills the
    sandbox and ends the row as cancelled.
    """
    ready = await in_db(_prepare, user_id, name, args, place or Place(trigger=Trigger.API), number)
    try:
        async with Execution.lease_kept(ready.execution.pk):
            outcome = await run_capability(ready.spec, ready.files, args, progress)
    except SandboxUnavailable:
        await in_db(execution_discard, execution=ready.execution)
        raise
    except asyncio.CancelledError:
        stopped = _failed(ErrorCode.CANCELLED, "The run was stopped.")
        await asyncio.shield(asyncio.ensure_future(_finish(ready, stopped)))
        raise
    except Exception:  # a defect, or a full disk: whatever it is, the row must not say that it runs
        await _finish(ready, _failed(ErrorCode.SANDBOX_FAILED, "The sandbox failed. Run it again."))
        raise
    return await _finish(ready, outcome)


async def _finish(ready: Ready, outcome: Outcome) -> Execution:
    return await in_db(
        execution_finish,
        execution=ready.execution,
        outcome=outcome,
        backend=ready.backend,
        scrubber=ready.scrubber,
    )


def _failed(code: ErrorCode, message: str) -> Outcome:
    return Outcome(ok=False, error=RunError(code, message))


def _prepare(user_id: UUID, name: str, args: dict[str, Any], place: Place, number: int | None) -> Ready:
    capability = capability_get(user_id, name)
    version = runnable_version(capability) if number is None else _approved_version(capability, number)
    if problem := input_error(version.input_schema, args):
        raise InvalidInput(problem, code="bad_input", field="input", input_schema=version.input_schema)
    files = files_verified(version, capability.name)
    environment = _environment(user_id, capability, version)
    secrets = [*secret_values(user_id), *environment.values()]
    scrubber = Scrubber(secrets)
    backend = current_backend()
    execution = execution_begin(
        capability=capability, version=version, args=args, place=place, scrubber=scrubber
    )
    spec = SandboxSpec(
        user_id=user_id,
        purpose=Purpose.RUN,
        hosts=frozenset(version.hosts),
        env=environment,
        requirements=files[REQUIREMENTS],
        secrets=secrets,
    )
    return Ready(
        execution=execution, files={MAIN: files[MAIN]}, spec=spec, scrubber=scrubber, backend=backend.name
    )


def runnable_version(capability: Capability) -> CapabilityVersion:
    """The current version, if it may run now. Raises CapabilityRefused."""
    name, reason = capability.name, capability.status_reason
    because = f" The reason: {reason}" if reason else ""
    match capability.status:
        case Status.BUILDING:
            raise refused("building", name, f"{name} is still being built. Try again when it is ready.")
        case Status.FAILED:
            raise refused("failed", name, f"{name} could not be built, so it cannot be run.{because}")
        case Status.DISABLED:
            raise refused(
                "disabled", name, f"{name} is disabled. The user can enable it on its page.{because}"
            )
    if capability.current is None:
        raise refused("failed", name, f"{name} has no version that could be run.")
    if not capability.current.is_approved:
        raise refused("not_approved", name, not_approved_text(name, capability.current))
    return capability.current


def _approved_version(capability: Capability, number: int) -> CapabilityVersion:
    version = version_get(capability, number)
    if not version.is_approved:
        raise refused("not_approved", capability.name, not_approved_text(capability.name, version))
    return version


def not_approved_text(name: str, version: CapabilityVersion) -> str:
    """One sentence on what the user still has to allow."""
    return f"Version {version.number} of {name} asks to {asked_by(version)}. The user has to approve that first, on its page or in the chat."


def asked_by(version: CapabilityVersion) -> str:
    """A version's requests: to reach hosts, use secrets, or be run at all."""
    asks = [f"reach {', '.join(version.hosts)}"] if version.hosts else []
    named = "the secret" if len(version.secrets) == 1 else "the secrets"
    asks += [f"use {named} {', '.join(version.secrets)}"] if version.secrets else []
    return " and ".join(asks) or "run, since it came from an archive"


def _environment(user_id: UUID, capability: Capability, version: CapabilityVersion) -> dict[str, str]:
    """The values of the approved secrets by name."""
    if missing := secrets_missing(user_id, version.secrets):
        message = f"{capability.name} needs the secret {missing[0]}, which is not stored. The user can add it in the settings, under Secrets."
        raise refused("missing_secret", capability.name, message)
    values = {name: secret_get(name, user_id=user_id) for name in version.secrets}
    if unreadable := [name for name, value in values.items() if not value]:
        message = f"The stored secret {unreadable[0]} cannot be decrypted with the present key. The user has to enter it anew."
        raise refused("missing_secret", capability.name, message)
    return values
