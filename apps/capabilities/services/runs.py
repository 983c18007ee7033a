"""The rows of runs: begun before the sandbox, held while it lives, ended with what came of it, pruned by age."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.agent.results import storable, truncated
from apps.agent.scrub import Scrubber
from apps.capabilities.models import Capability, CapabilityVersion, Execution, Trigger
from apps.capabilities.sandbox.base import ErrorCode, Outcome
from apps.core.jobs.leases import PROCESS, lease_end

MAX_RESULT_CHARS = 200_000
MAX_LOG_CHARS = 50_000
MAX_ERROR_CHARS = 8_000
INTERRUPTED = "Izzy was stopped, or went down, while this was running: there is no result. Run it again."
NOT_THE_TOOLS_FAULT = {ErrorCode.CANCELLED.value, ErrorCode.SANDBOX_FAILED.value, "interrupted"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a run was asked for."""

    trigger: Trigger
    conversation_id: UUID | None = None
    turn_id: UUID | None = None
    tool_call_id: UUID | None = None


@transaction.atomic
def execution_begin(
    *,
    capability: Capability,
    version: CapabilityVersion,
    args: dict[str, Any],
    place: Place,
    scrubber: Scrubber,
) -> Execution:
    """A running row, its input scrubbed of secrets."""
    return Execution.objects.create(
        user_id=capability.user_id,
        capability=capability,
        version=version.number,
        trigger=place.trigger,
        input=scrubber.json(storable(args)),
        conversation_id=place.conversation_id,
        turn_id=place.turn_id,
        tool_call_id=place.tool_call_id,
        runner=PROCESS,
        lease_until=lease_end(),
    )


@transaction.atomic
def execution_finish(
    *, execution: Execution, outcome: Outcome, backend: str, scrubber: Scrubber
) -> Execution:
    """Ends a run: all texts scrubbed of secrets and then cut, the capability's counts moved on."""

    def kept(text: str, most: int) -> str:
        return truncated(scrubber.text(storable(text)), most)

    error = outcome.error
    execution.state = Execution.State.OK if outcome.ok else Execution.State.FAILED
    execution.result = kept(outcome.result or "", MAX_RESULT_CHARS)
    execution.error_code = error.code.value if error else ""
    execution.error_message = kept(error.message, MAX_ERROR_CHARS) if error else ""
    execution.stdout = kept(outcome.stdout, MAX_LOG_CHARS)
    execution.stderr = kept(outcome.stderr, MAX_LOG_CHARS)
    execution.hosts_used = list(outcome.hosts_used)
    execution.backend, execution.duration_ms = backend, outcome.duration_ms
    execution.finished_at = timezone.now()
    if _update(execution):
        _count(execution)
    return execution


def execution_discard(*, execution: Execution) -> None:
    """Removes the row of a run that never began: there was no sandbox."""
    Execution.objects.for_user(execution.user_id).filter(pk=execution.pk).delete()


def executions_interrupt(*, user_id: UUID | None = None) -> None:
    """Ends the rows of runs whose process is gone. Of one user, or (sweep) of all. A result that comes after all, from a
    process that had only been very slow, takes its place."""
    rows = Execution.objects.unscoped() if user_id is None else Execution.objects.for_user(user_id)
    lost = rows.filter(Execution.lease_free(), state=Execution.State.RUNNING)
    if lost.exists():  # hardly ever: pages ask this too, and must not wait for their turn to write
        lost.update(
            state=Execution.State.FAILED,
            error_code="interrupted",
            error_message=INTERRUPTED,
            finished_at=timezone.now(),
        )


def executions_prune() -> None:
    """Sweep: removes runs that are too old."""
    oldest = timezone.now() - timedelta(days=settings.IZZY_EXECUTION_DAYS)
    Execution.objects.unscoped().filter(created_at__lt=oldest).delete()


def _update(execution: Execution) -> bool:
    fields = (
        "state",
        "result",
        "error_code",
        "error_message",
        "stdout",
        "stderr",
        "hosts_used",
        "backend",
        "duration_ms",
        "finished_at",
    )
    rows = Execution.objects.for_user(execution.user_id).filter(pk=execution.pk)
    return bool(rows.update(**{name: getattr(execution, name) for name in fields}))


def _count(execution: Execution) -> None:
    rows = Capability.objects.for_user(execution.user_id).filter(pk=execution.capability_id)
    if execution.trigger == Trigger.RETEST:
        return
    changes: dict[str, Any] = {"last_run_at": execution.finished_at}
    if execution.error_code not in NOT_THE_TOOLS_FAULT:
        worked = execution.state == Execution.State.OK
        changes |= {"runs": F("runs") + 1, "successes": F("successes") + int(worked)}
        changes["failures_in_row"] = 0 if worked else F("failures_in_row") + 1
    rows.update(**changes)
