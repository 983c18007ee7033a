"""Checks of builds: open ones that can go on, ended ones that have an end, and capabilities that say they are being built."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, F, Max, OuterRef, Q
from django.utils import timezone

from apps.builder.builds.ending import build_end
from apps.builder.models import OPEN_STATES, Build, BuilderMessage, DialogueMessage, Follower, State
from apps.capabilities.catalog.lifecycle import capability_fail
from apps.capabilities.models import Capability, Status
from apps.core.integrity import Check, Finding, disposable, findings, integrity_checks, rows_of

REASON = "Izzy lost what it needed to go on with this. Try again."
NOT_BUILT = "Nothing builds it any more. Try again."


def _find(user_id: UUID | None) -> Iterator[Finding]:
    builds = rows_of(Build, user_id)
    open_builds = builds.filter(state__in=OPEN_STATES)
    yield from findings(
        open_builds.exclude(ended_at=None),
        "It is open, and has a time at which it ended.",
        repair="Takes the time away; it goes on.",
        kind="reopen",
    )
    yield from findings(
        builds.exclude(state__in=OPEN_STATES).filter(ended_at=None),
        "It has ended, and no time says when.",
        repair="Notes the present time.",
        kind="time",
    )
    yield from findings(
        builds.filter(state=State.RUNNING, started_at=None),
        "It is being built, and was never begun.",
        repair="Puts it back into the queue.",
        kind="queue",
    )
    # A build goes on from its talk with the model, which is numbered from 0 without a gap.
    talk = DialogueMessage._base_manager.filter(build=OuterRef("pk")).order_by().values("build")
    gaps = talk.annotate(gap=Max("position") + 1 - Count("pk")).values("gap")
    yield from findings(
        open_builds.annotate(gap=gaps).filter(gap__gt=0),
        "It is open, and parts of its talk with the model are gone.",
        repair="Ends it as failed; the user can ask for it again.",
        kind="end",
    )
    newest = BuilderMessage._base_manager.filter(build=OuterRef("pk")).order_by("-number")
    yield from findings(
        builds.annotate(top=newest.values("number")[:1]).filter(top__gt=F("messages_count")),
        "It counts fewer messages than it has: no new one could be stored.",
        repair="Raises its counter.",
        kind="count",
    )
    unready = Q(capability__current=None) & ~Q(capability__status=Status.BUILDING)
    yield from findings(
        open_builds.filter(unready),
        "It is open, and its capability, which has no version yet, is not being built.",
        repair="Ends it as failed; the user can ask for it again.",
        kind="end",
    )
    yield from findings(
        rows_of(Follower, user_id).filter(emitted__gt=F("build__messages_count")),
        "It was sent more messages of its build than there are.",
        repair="Sends it what is new from here on.",
        kind="emitted",
    )
    busy = Build._base_manager.filter(capability=OuterRef("pk"), state__in=OPEN_STATES)
    yield from findings(
        rows_of(Capability, user_id).filter(~Exists(busy), status=Status.BUILDING),
        "It says that it is being built, and no build is open.",
        repair="Puts it back into use where it has a version, else notes that it failed.",
        kind="idle",
    )


def _fix(found: Sequence[Finding]) -> None:
    for finding in found:
        kind, key = finding.subject
        with transaction.atomic():
            _repair(kind, key, finding.user_id)


def _repair(kind: str, key: UUID, user_id: UUID | None) -> None:
    builds = Build.objects.unscoped().filter(pk=key)
    if kind == "idle" and user_id:
        open_ones = Build.objects.unscoped().filter(capability_id=key, state__in=OPEN_STATES)
        if not open_ones.exists():
            capability_fail(user_id=user_id, capability_id=key, reason=NOT_BUILT)
    elif kind == "emitted":
        follower = Follower.objects.unscoped().select_related("build").get(pk=key)
        follower.emitted = follower.build.messages_count
        follower.save(update_fields=["emitted"])
    elif kind == "reopen":
        builds.filter(state__in=OPEN_STATES).update(ended_at=None)
    elif kind == "time":
        builds.exclude(state__in=OPEN_STATES).update(ended_at=timezone.now())
    elif kind == "queue":
        builds.filter(state=State.RUNNING, started_at=None).update(
            state=State.QUEUED, runner="", lease_until=None
        )
    elif kind == "count":
        newest = BuilderMessage.objects.unscoped().filter(build_id=key).aggregate(top=Max("number"))
        builds.update(messages_count=newest["top"] or 0)
    elif kind == "end" and (build := builds.select_for_update().first()):
        build_end(build=build, code="interrupted", reason=REASON)


integrity_checks.register("builder: builds", Check("Builds can go on or have ended", _find, _fix))
disposable |= {"builder.Follower", "builder.BuilderMessage", "builder.DialogueMessage"}
