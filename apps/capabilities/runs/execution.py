"""Running a capability: checks, a fresh sandbox, and the row that says what came of it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.accounts.secrets import secret_get, secret_values
from apps.agent.tools.base import MAY_BE_BEHIND, Reach
from apps.agent.tools.results import Scrubber, result_text
from apps.capabilities.catalog.drafts import MAIN, PREFIX, REQUIREMENTS
from apps.capabilities.catalog.files import CapabilityRefused, files_verified
from apps.capabilities.catalog.selectors import capability_get, secrets_missing, version_get
from apps.capabilities.models import Capability, CapabilityVersion, Execution, Status, Trigger
from apps.capabilities.sandbox.base import (
    ErrorCode,
    Progress,
    Purpose,
    RunError,
    RunResult,
    SandboxSpec,
    SandboxUnavailable,
)
from apps.capabilities.sandbox.running import current_backend, run_capability
from apps.core.db.pool import in_db, shielded
from apps.core.db.writing import users_of
from apps.core.errors import InvalidInput
from apps.core.jobs.leases import LEASE_END, PROCESS
from apps.core.text import storable

MAX_RESULT_CHARS = 200_000
MAX_LOG_CHARS = 50_000
MAX_ERROR_CHARS = 8_000
INTERRUPTED = "Izzy was stopped, or went down, while this was running: there is no result. Run it again."
NOT_THE_TOOLS_FAULT = {ErrorCode.CANCELLED.value, ErrorCode.SANDBOX_FAILED.value, "interrupted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrigin:
    """Where a run was asked for."""

    trigger: Trigger
    conversation_id: UUID | None = None
    turn_id: UUID | None = None
    tool_call_id: UUID | None = None


@transaction.atomic
def execution_finish(execution: Execution, outcome: RunResult, *, secrets: Sequence[str]) -> Execution:
    """Ends a run: all texts scrubbed of secrets and then cut, the capability's counts moved on."""
    scrubber, error = Scrubber(secrets), outcome.error
    values = {
        "result": result_text(outcome.result or "", limit=MAX_RESULT_CHARS, scrubber=scrubber),
        "error_message": result_text(
            error.message if error else "", limit=MAX_ERROR_CHARS, scrubber=scrubber
        ),
        "stdout": result_text(outcome.stdout, limit=MAX_LOG_CHARS, scrubber=scrubber),
        "stderr": result_text(outcome.stderr, limit=MAX_LOG_CHARS, scrubber=scrubber),
        "state": Execution.State.FAILED if error else Execution.State.OK,
        "error_code": error.code.value if error else "",
        "hosts_used": list(outcome.hosts_used),
        "backend": execution.backend,
        "duration_ms": outcome.duration_ms,
        "finished_at": timezone.now(),
    }
    for name, value in values.items():
        setattr(execution, name, value)
    row = Execution.objects.for_user(execution.user_id).filter(pk=execution.pk)
    if row.update(**values) and execution.trigger != Trigger.RETEST:
        counts: dict[str, Any] = {"last_run_at": execution.finished_at}
        if execution.error_code not in NOT_THE_TOOLS_FAULT:
            counts |= {"runs": F("runs") + 1, "successes": F("successes") + int(error is None)}
            counts["failures_in_row"] = F("failures_in_row") + 1 if error else 0
        rows = Capability.objects.for_user(execution.user_id).filter(pk=execution.capability_id)
        rows.update(**counts)
    return execution


def executions_interrupt(*, user_id: UUID | None = None) -> None:
    """Ends the rows of runs whose process is gone. Of one user, or (sweep) of all. A result that comes after all, from a
    process that had only been very slow, takes its origin."""
    rows = Execution.objects.unscoped() if user_id is None else Execution.objects.for_user(user_id)
    lost = rows.filter(Execution.lease_free(), state=Execution.State.RUNNING)
    for _, own in users_of(
        lost
    ):  # hardly ever: pages ask this too, and must not wait for their turn to write
        own.update(
            state=Execution.State.FAILED,
            error_code="interrupted",
            error_message=INTERRUPTED,
            finished_at=timezone.now(),
        )


def executions_prune() -> None:
    """Sweep: removes runs that are too old."""
    oldest = timezone.now() - timedelta(days=settings.IZZY_EXECUTION_DAYS)
    for _, own in users_of(Execution.objects.unscoped().filter(created_at__lt=oldest)):
        own.delete()


async def capability_execute(
    *,
    user_id: UUID,
    name: str,
    args: dict[str, Any],
    origin: RunOrigin | None = None,
    progress: Progress | None = None,
    number: int | None = None,
    allowed: dict[str, Any] | None = None,
) -> Execution:
    """Runs the current version of a capability in a fresh sandbox and returns the finished row; with `number` that
    version, which is to be tested. `allowed` is the reach that a yes to this run was bound to.

    Raises NotFound; CapabilityRefused (`building`, `failed`, `disabled`, `not_approved`, `version_changed`, `missing_secret`,
    `tampered`); InvalidInput (`bad_input`); SandboxUnavailable. Whatever the tool does wrong is in the row. Cancelling kills the
    sandbox and ends the row as cancelled.
    """
    origin = origin or RunOrigin(trigger=Trigger.API)

    def failed(code: ErrorCode, message: str) -> RunResult:
        return RunResult(error=RunError(code, message))

    async def stop(execution: Execution, spec: SandboxSpec) -> None:
        stopped = failed(ErrorCode.CANCELLED, "The run was stopped.")
        ending = in_db(execution_finish, execution, stopped, secrets=spec.secrets)
        await shielded(ending)

    preparing = asyncio.ensure_future(in_db(_prepare, user_id, name, args, origin, number, allowed))
    try:
        execution, files, spec = await shielded(preparing)
    except asyncio.CancelledError:
        if preparing.done() and not preparing.cancelled() and preparing.exception() is None:
            execution, _, spec = preparing.result()  # the row is there by now, and says that it runs
            await stop(execution, spec)
        raise

    finish = partial(execution_finish, execution, secrets=spec.secrets)

    try:
        async with Execution.lease_kept(execution.pk):
            outcome = await run_capability(spec, files, args, progress)
    except SandboxUnavailable:  # it never began
        await in_db(Execution.objects.for_user(user_id).filter(pk=execution.pk).delete)
        raise
    except asyncio.CancelledError:
        await stop(execution, spec)
        raise
    except Exception:  # a defect, or a full disk: whatever it is, the row must not say that it runs
        await in_db(finish, failed(ErrorCode.SANDBOX_FAILED, "The sandbox failed. Run it again."))
        raise
    return await in_db(finish, outcome)


def _prepare(
    user_id: UUID,
    name: str,
    args: dict[str, Any],
    origin: RunOrigin,
    number: int | None,
    allowed: dict[str, Any] | None,
) -> tuple[Execution, Mapping[str, str], SandboxSpec]:
    """A run that has passed all checks: its row (running, the input scrubbed of secrets), its files, and the sandbox that it
    needs."""
    from apps.agent.tools.schema import input_error  # loading jsonschema takes a tenth of a second

    capability = capability_get(user_id, name)
    version = runnable_version(capability, number)
    if allowed is not None and (reach := version_reach(capability)) and reach.to_json() != allowed:
        message = f"{name} was changed after this call was looked at: by now version {version.number} asks to {asked_by(version)}. Nothing was run. Call again, so that the user is asked about that version."
        raise CapabilityRefused("version_changed", name, message)
    if problem := input_error(version.input_schema, args):
        raise InvalidInput(problem, code="bad_input", field="input", input_schema=version.input_schema)
    files = files_verified(version, capability.name)
    environment = _environment(user_id, capability, version) if version.secrets else {}
    spec = SandboxSpec(
        user_id=user_id,
        purpose=Purpose.RUN,
        hosts=frozenset(version.hosts),
        env=environment,
        requirements=files[REQUIREMENTS],
        secrets=[*secret_values(user_id), *environment.values()],
    )
    backend = current_backend()
    execution = Execution.objects.create(
        user_id=user_id,
        capability=capability,
        version=version.number,
        trigger=origin.trigger,
        input=Scrubber(spec.secrets).json(storable(args)),
        conversation_id=origin.conversation_id,
        turn_id=origin.turn_id,
        tool_call_id=origin.tool_call_id,
        runner=PROCESS,
        lease_until=LEASE_END,
    )
    execution.backend = backend.name
    return execution, {MAIN: files[MAIN]}, spec


def runnable_version(capability: Capability, number: int | None = None) -> CapabilityVersion:
    """The current version, if it may run now; with `number` that one, which is to be tested. Raises CapabilityRefused."""
    name, reason = capability.name, capability.status_reason
    because = f" The reason: {reason}" if reason else ""
    refusals = {
        Status.BUILDING: f"{name} is still being built. Try again when it is ready.",
        Status.FAILED: f"{name} could not be built, so it cannot be run.{because}",
        Status.DISABLED: f"{name} is disabled. The user can enable it on its page.{because}",
    }
    status = Status(capability.status)
    if number is None and status in refusals:
        raise CapabilityRefused(status.value, name, refusals[status])
    version = capability.current if number is None else version_get(capability, number)
    if version is None:
        raise CapabilityRefused("failed", name, f"{name} has no version that could be run.")
    if not version.is_approved:
        message = f"Version {version.number} of {name} asks to {asked_by(version)}. The user has to approve that first, on its page or in the chat."
        raise CapabilityRefused("not_approved", name, message)
    return version


def version_reach(capability: Capability) -> Reach | None:
    """The hosts and secrets of the current version; None where it has neither."""
    version = capability.current
    if version is None or not (version.hosts or version.secrets):
        return None
    can = [f"pass on what it is given to {', '.join(version.hosts)}"] if version.hosts else []
    can += [f"use your secret {', '.join(version.secrets)}"] if version.secrets else []
    return Reach(
        reason=f"{MAY_BE_BEHIND} {capability.name} can {' and '.join(can)}.",
        tool=f"{PREFIX}{capability.name}",
        hosts=version.hosts,
        secrets=version.secrets,
        capability=str(capability.pk),
        version=version.number,
    )


def reach_holds(user_id: UUID, reach: Mapping[str, Any]) -> bool:
    """Whether a lasting yes to this reach (`Reach.to_json`) can cover a call: not where it is that of a capability's version which
    is not the current one any more."""
    if not reach["capability"]:
        return True
    rows = Capability.objects.for_user(user_id).select_related("current")
    capability = rows.filter(pk=reach["capability"]).first()
    now = version_reach(capability) if capability else None
    return now is not None and now.to_json() == reach


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
        raise CapabilityRefused("missing_secret", capability.name, message)
    values = {name: secret_get(name, user_id=user_id) for name in version.secrets}
    if unreadable := [name for name, value in values.items() if not value]:
        message = f"The stored secret {unreadable[0]} cannot be decrypted with the present key. The user has to enter it anew."
        raise CapabilityRefused("missing_secret", capability.name, message)
    return values
