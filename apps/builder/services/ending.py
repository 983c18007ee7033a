"""How a build ends, in one transaction with its last message and with what its capability becomes."""

from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from apps.agent.models import ToolCall
from apps.agent.selectors import conversation_untrusted
from apps.builder import hooks
from apps.builder.completion import completion
from apps.builder.models import Build, Kind, MessageType, State
from apps.builder.services.queue import message_add
from apps.capabilities.drafts import Draft
from apps.capabilities.models import Capability, CapabilityVersion, Origin, Status
from apps.capabilities.services import capability_enable, capability_fail, version_add
from apps.core.jobs.leases import RELEASED
from apps.memory.capture.services import conversation_tainted

MAX_REASON_CHARS = 2_000
UNTESTED = (
    " The user has to allow what it asks for; Izzy runs the examples then. Nothing is left for you to do."
)


@transaction.atomic
def build_end(*, build: Build, state: State, code: str = "", reason: str = "") -> bool:
    """Ends a build without a version: failed or cancelled. False where it had ended before.

    A capability that has a version keeps it and its status; one that has none is failed, with the reason.
    """
    if not _close(build, state, code=code, reason=reason):
        return False
    _close_calls(build)
    capability = Capability.objects.for_user(build.user_id).filter(pk=build.capability_id).first()
    if capability is not None and capability.current_id is None:
        capability_fail(user_id=build.user_id, capability_id=capability.pk, reason=build.reason)
    message_add(build=build, type=MessageType.ERROR, payload={"code": code or state, "text": build.reason})
    _tell(build)
    return True


@transaction.atomic
def build_succeed(*, build: Build, draft: Draft, tested: bool = True) -> CapabilityVersion | None:
    """Makes the draft the capability's new version and ends the build. None where it had ended before.

    `tested` says that its examples have passed; else they are run when the user has allowed what it asks for. It counts as
    approved where everything it asks for was allowed during the build. One that waits for approval leaves the version
    before it in use. Raises InvalidInput, TooLarge as `version_add`; then nothing has happened.
    """
    if not _close(build, State.DONE):
        return None
    asks = bool(draft.hosts or draft.secrets)
    approved = asks and set(draft.hosts) <= set(build.hosts) and secrets_allowed(build, draft)
    version = version_add(
        user_id=build.user_id,
        capability_id=build.capability_id,
        draft=draft,
        origin=Origin.BUILDER,
        approved_by=build.user_id if approved else None,
        quotes_others=bool(build.hosts) or others_spoke(build),
        tested=tested,
        beside=True,
    )
    build.version = version.number
    build.save(update_fields=["version"])
    _close_calls(build, "register_capability", registered(version, tested=tested))
    _close_calls(build)
    if build.kind == Kind.NEW and version.capability.status == Status.DISABLED:
        capability_enable(user_id=build.user_id, capability_id=build.capability_id)
    message_add(build=build, type=MessageType.COMPLETE, payload=completion(build, version))
    _tell(build)
    return version


def secrets_allowed(build: Build, draft: Draft) -> bool:
    """Whether the user has allowed each of the draft's secrets to a tool that reaches no other hosts than this one."""
    return all(
        name in build.secrets and set(draft.hosts) <= set(build.secrets[name]) for name in draft.secrets
    )


def others_spoke(build: Build) -> bool:
    """Whether what was asked for may come from words that neither the user nor Izzy wrote: such were read or quoted in its
    conversation."""
    place = build.conversation_id
    if place is None:
        return False
    read = conversation_untrusted(user_id=build.user_id, conversation_id=place)
    return read or conversation_tainted(build.user_id, place)


def _close(build: Build, state: State, *, code: str = "", reason: str = "") -> bool:
    """Of all that may try, one ends a build."""
    open_row = Build.objects.for_user(build.user_id).filter(
        pk=build.pk, state__in=[State.QUEUED, State.RUNNING]
    )
    values = {
        "state": state,
        "error_code": code[:48],
        "reason": reason[:MAX_REASON_CHARS],
        "ended_at": timezone.now(),
        **RELEASED,
    }
    if not open_row.update(**values):
        return False
    for name, value in values.items():
        setattr(build, name, value)
    return True


def _close_calls(build: Build, name: str = "", result: str = "") -> None:
    """Ends the running call of this name with its result; without a name all that are open, as failed. The process that made
    them may be stopped before it could: the build is not its own any more."""
    calls = ToolCall.objects.for_user(build.user_id).filter(turn_id=build.pk)
    if name:
        calls = calls.filter(name=name, state=ToolCall.State.RUNNING)
    for call in calls.exclude(state=ToolCall.State.DONE):
        took = build.ended_at - call.started_at if build.ended_at and call.started_at else timedelta()
        call.state, call.finished_at = ToolCall.State.DONE, build.ended_at
        call.duration_ms = max(0, round(took.total_seconds() * 1000))
        call.result = result or "The build ended before this was done."
        call.is_error, call.error_code = not name, "" if name else build.state
        call.save()


def registered(version: CapabilityVersion, *, tested: bool) -> str:
    """The result of the call that handed it in."""
    waits = "" if tested else UNTESTED
    return f"Registered {version.capability.name} in version {version.number}.{waits} The build is done."


def _tell(build: Build) -> None:
    for _, listener in hooks.finished:
        listener(build)
