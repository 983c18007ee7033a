"""How a build ends, in one transaction with its last message and with what its capability becomes; what its version comes to later."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Literal, TypeAlias

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.agent.models import ToolCall
from apps.agent.selectors import conversation_untrusted
from apps.builder.builds.messages import message_add
from apps.builder.models import (
    OPEN_STATES,
    Build,
    BuilderMessage,
    DialogueMessage,
    Kind,
    MessageType,
    State,
)
from apps.capabilities.catalog.drafts import Draft
from apps.capabilities.catalog.lifecycle import capability_enable, capability_fail
from apps.capabilities.catalog.selectors import (
    may_quote_others,
    others_wrote,
    secrets_missing,
    version_waiting,
)
from apps.capabilities.catalog.versions import version_add
from apps.capabilities.models import CapabilityVersion, Execution, Origin, Status
from apps.core.db.writing import in_slices, users_of
from apps.core.jobs.leases import RELEASED
from apps.core.log_ids import log_activity, log_ids
from apps.core.metrics.base import SLOW, counter, histogram
from apps.core.registries import Registry
from apps.memory.capture.windows import conversation_tainted

finished: Registry[Callable[[Build], None]] = Registry()
"""name -> fn(build), called inside the transaction that ends a build (done, failed or cancelled)."""

version_resolved: Registry[Callable[[Build], None]] = Registry()
"""name -> fn(build), called inside the transaction in which the version of a build that is done was approved, tested or
overtaken by a newer one."""


Stage: TypeAlias = Literal["ready", "approval", "secrets", "testing", "failing", "replaced"]
TEXTS: dict[Stage, str] = {
    "ready": "{name} is ready{version}.",
    "approval": "{name} is built{version} and waits for your approval.",
    "secrets": "{name} is built{version} and waits for a secret: {missing}.",
    "testing": "{name} is built{version} and is being tested.",
    "failing": "{name} is built{version}, but failed its test.",
    "replaced": "{name} was built{version}; a newer version has taken its place.",
}
GAVE_UP = "gave_up"
ITS_OWN_WORDS = "The builder gave up; the page of the build has its words."
CANCELLED, YOU_CANCELLED = "cancelled", "You cancelled it."
MAX_REASON_CHARS = 2_000
UNTESTED = " The user has to allow what it asks for; Izzy runs the examples then. Nothing is left for you to do."
AT_ONCE = 200
BUILDS = counter(
    "izzy_builds_total",
    "Builds that ended; the outcome is `ok` or the code of the failure.",
    "state",
    "outcome",
)
SECONDS = histogram(
    "izzy_build_seconds", "Time from the request of a build to its end.", "state", buckets=SLOW
)
"""Builds per transaction, so that nobody waits long for the write lock."""


def stage_of(version: CapabilityVersion) -> Stage:
    """How far a version of the builder's is: one that is not approved yet waits for that; then its examples are run, for
    which its secrets must be there. Where a newer one came before that, neither can happen any more."""
    capability = version.capability
    overtaken = version.pk != capability.current_id and version_waiting(capability) != version
    if version.is_pending and overtaken:
        return "replaced"
    if not version.is_approved:
        return "approval"
    if version.is_unproven:
        return "secrets" if secrets_missing(version.user_id, version.secrets) else "testing"
    return "failing" if version.test_failures else "ready"


def completion(build: Build, version: CapabilityVersion) -> dict[str, Any]:
    """The payload of a build's `complete` message."""
    stage = stage_of(version)
    missing = ", ".join(secrets_missing(version.user_id, version.secrets))
    numbered = f" in version {version.number}" if version.number > 1 else ""
    return {
        "text": TEXTS[stage].format(name=build.name, version=numbered, missing=missing),
        "stage": stage,
        "capability": build.name,
        "version": version.number,
        "waits_for_approval": stage == "approval",
        "verified": stage == "ready",
        "problem": str(version.test_failures[0]) if version.test_failures else "",
        "hosts": version.hosts,
        "secrets": version.secrets,
    }


@transaction.atomic
def build_end(*, build: Build, code: str, reason: str) -> None:
    """Ends a build without a version: cancelled where the code says so, else failed. Nothing where it had ended before.

    A capability that has a version keeps it and its status; one that has none is failed, with the reason.
    """
    state = State.CANCELLED if code == CANCELLED else State.FAILED
    if not _close(build, state, code=code, reason=reason):
        return
    shown = reason_shown(build)
    capability_fail(user_id=build.user_id, capability_id=build.capability_id, reason=shown)
    _announce(build, MessageType.ERROR, {"code": code, "text": shown})


@transaction.atomic
def build_succeed(*, build: Build, draft: Draft, tested: bool = True) -> CapabilityVersion | None:
    """Makes the draft the capability's new version and ends the build. None where it had ended before.

    `tested` says that its examples have passed; else they are run when the user has allowed what it asks for. It counts as
    approved where everything it asks for was allowed during the build. One that waits for approval, or for its test,
    leaves the version before it in use. Raises InvalidInput, TooLarge as `version_add`; then nothing has happened.
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
        quotes_others=others_spoke(build),
        tested=tested,
        beside=True,
    )
    build.version = version.number
    build.save(update_fields=["version"])
    if build.kind == Kind.NEW and version.capability.status == Status.DISABLED:
        capability_enable(user_id=build.user_id, capability_id=build.capability_id)
    result = registered(version, tested=tested)
    _announce(build, MessageType.COMPLETE, completion(build, version), result)
    return version


def secrets_allowed(build: Build, draft: Draft) -> bool:
    """Whether the user has allowed each of the draft's secrets to a tool that reaches no other hosts than this one."""
    return all(
        name in build.secrets and set(draft.hosts) <= set(build.secrets[name]) for name in draft.secrets
    )


def others_spoke(build: Build) -> bool:
    """Whether words that neither the user nor Izzy wrote may be behind what the builder does: those of its conversation, of hosts
    that it reached, of the run that it repairs, or of the versions whose files it is given."""
    return bool(build.hosts) or asked_among_others(build) or _read_others(build)


def asked_among_others(build: Build) -> bool:
    """Whether such were read or quoted in the conversation that it was asked for in."""
    user_id, conversation_id = build.user_id, build.conversation_id
    return conversation_id is not None and (
        conversation_untrusted(user_id=user_id, conversation_id=conversation_id)
        or conversation_tainted(user_id, conversation_id)
    )


def _read_others(build: Build) -> bool:
    if build.execution_id is not None:
        runs = Execution.objects.for_user(build.user_id).filter(pk=build.execution_id)
        if any(map(may_quote_others, runs)):
            return True
    versions = CapabilityVersion.objects.for_user(build.user_id).filter(capability=build.capability_id)
    newest = versions.order_by("-number").first()
    return newest is not None and others_wrote(newest)


def reason_shown(build: Build) -> str:
    """Why it failed, as it may be said in a conversation: once others spoke, the builder's own last words and what its tools last
    printed, which follows the first line, stand on the build's page alone."""
    if not others_spoke(build):
        return build.reason
    return ITS_OWN_WORDS if build.error_code == GAVE_UP else build.reason.partition("\n")[0]


def _close(build: Build, state: State, *, code: str = "", reason: str = "") -> bool:
    """Of all that may try, one ends a build."""
    open_row = Build.objects.for_user(build.user_id).filter(pk=build.pk, state__in=OPEN_STATES)
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


def registered(version: CapabilityVersion, *, tested: bool) -> str:
    """The result of the call that handed it in."""
    waits = "" if tested else UNTESTED
    return f"Registered {version.capability.name} in version {version.number}.{waits} The build is done."


def _announce(build: Build, type: MessageType, payload: dict[str, Any], result: str = "") -> None:
    """Says how it ended. The running call that handed it in ends with this result, all others that are open as failed: their
    process may be stopped before it could do so, since the build is not its own any more."""
    calls = ToolCall.objects.for_user(build.user_id).filter(turn_id=build.pk)
    for call in calls.exclude(state=ToolCall.State.DONE):
        handed_in = call.name == "register_capability" and call.state == ToolCall.State.RUNNING
        call.is_error = not (result and handed_in)
        call.error_code = build.state if call.is_error else ""
        call.result = "The build ended before this was done." if call.is_error else result
        took = build.ended_at - call.started_at if build.ended_at and call.started_at else timedelta()
        call.state, call.finished_at = ToolCall.State.DONE, build.ended_at
        call.duration_ms = max(0, round(took.total_seconds() * 1000))
        call.save()
    message_add(build=build, type=type, payload=payload)
    transaction.on_commit(partial(_count, build))
    for listener in finished.values():
        listener(build)


def _count(build: Build) -> None:
    if build.ended_at is None:
        return
    seconds = max(0.0, (build.ended_at - build.created_at).total_seconds())
    BUILDS.add(build.state, build.error_code or "ok")
    SECONDS.observe(seconds, build.state)
    ids = {"build": build.pk, "conversation": build.conversation_id, "user": build.user_id}
    with log_ids(**ids):
        log_activity("build", f"build {build.state}", state=build.state, took_ms=round(seconds * 1000))


@transaction.atomic
def version_follow(version: CapabilityVersion) -> None:
    """Adds to the messages of the build that made the version how it stands now: approved, tested, failing, replaced. Nothing
    where it came from no build."""
    builds = Build.objects.for_user(version.user_id).filter(
        capability_id=version.capability_id, version=version.number, state=State.DONE
    )
    build = builds.order_by("-created_at").first()
    if build is None:
        return
    message_add(build=build, type=MessageType.COMPLETE, payload=completion(build, version))
    for listener in version_resolved.values():
        listener(build)


def transcripts_prune() -> None:
    """Sweep: removes the rounds of builds that ended IZZY_BUILD_TRANSCRIPT_DAYS ago: the talk with the model, tool calls with
    code and output, lines of progress. The build itself stays with its questions, answers and end, its model calls with
    tokens and cost, and the files of its version."""
    before = timezone.now() - timedelta(days=settings.IZZY_BUILD_TRANSCRIPT_DAYS)
    old = Build.objects.unscoped().filter(ended_at__lt=before, has_transcript=True)
    for _, own in users_of(old.exclude(state__in=OPEN_STATES)):
        in_slices(partial(_prune, own))


@transaction.atomic
def _prune(old: QuerySet[Build]) -> bool:
    """One portion; whether there may be more."""
    chosen = list(old.values_list("pk", flat=True)[:AT_ONCE])
    DialogueMessage.objects.unscoped().filter(build_id__in=chosen).delete()
    ToolCall.objects.unscoped().filter(turn_id__in=chosen).delete()
    BuilderMessage.objects.unscoped().filter(build_id__in=chosen, type=MessageType.PROGRESS).delete()
    Build.objects.unscoped().filter(pk__in=chosen).update(has_transcript=False)
    return len(chosen) == AT_ONCE
