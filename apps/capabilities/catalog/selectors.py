"""Reads of the catalog."""

from collections.abc import Collection, Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Min, Q, QuerySet
from django.utils import timezone

from apps.accounts.models import Secret
from apps.capabilities.catalog.drafts import NAME
from apps.capabilities.models import Capability, CapabilityVersion, Execution, Origin, Status
from apps.core.db.prepared import prepared
from apps.core.db.saying import says
from apps.core.errors import NotFound
from apps.core.ids import parse_id
from apps.core.text import fold

UNUSED_FOR = timedelta(days=90)
FAILING_RUNS = 3
FEW = 31
"""As many of the active ones are asked for with each message."""
OTHERS_WROTE = Q(untrusted=True) | Q(quotes_others=True) | Q(origin=Origin.IMPORT)


def capability_get(user_id: UUID, name: object) -> Capability:
    """The capability of that name, or with that id. Raises NotFound for a foreign or unknown one."""
    rows = Capability.objects.for_user(user_id).select_related("current")
    if isinstance(name, str) and NAME.fullmatch(name):
        found = rows.filter(name=name).first()
    else:
        found = rows.filter(pk=parse_id(name)).first()
    if found is None:
        raise NotFound("There is no capability of this name.")
    return found


def capabilities_for(
    user_id: UUID, *, status: str = "", q: str = "", tag: str = ""
) -> QuerySet[Capability]:
    """The user's capabilities by name, those of a status, a tag, and with all words of `q` in name, description or tags."""
    rows = Capability.objects.for_user(user_id).select_related("current").order_by("name")
    if status:
        rows = rows.filter(status=status)
    labels = _labels(user_id) if tag or q else {}
    if tag:
        rows = rows.filter(pk__in=[key for key, tags in labels.items() if fold(tag) in tags])
    for word in q.split()[:20]:
        labelled = [key for key, tags in labels.items() if any(fold(word) in each for each in tags)]
        rows = rows.filter(Q(name__icontains=word) | Q(says("description", word)) | Q(pk__in=labelled))
    return rows


def _labels(user_id: UUID) -> dict[UUID, list[str]]:
    """The tags of the user's capabilities as they are compared; databases have them as JSON, each written its own way."""
    rows = Capability.objects.for_user(user_id).exclude(tags=[]).order_by()
    return {key: [fold(each) for each in tags] for key, tags in rows.values_list("pk", "tags")}


def capabilities_active(user_id: UUID, *, limit: int | None = None) -> list[Capability]:
    """The active ones by name; `limit` of them where given."""
    if limit is not None and limit <= FEW:
        return _first_active(user_id)[:limit]
    return list(capabilities_for(user_id, status=Status.ACTIVE)[:limit])


@prepared
def _first_active(user_id: UUID) -> QuerySet[Capability]:
    return capabilities_for(user_id, status=Status.ACTIVE)[:FEW]


def capabilities_used_in(user_id: UUID, conversation_id: UUID) -> list[Capability]:
    """The active ones that were run in a conversation, in the order of their first run there."""
    runs = Execution.objects.for_user(user_id).filter(conversation_id=conversation_id).order_by()
    first = runs.values("capability_id").annotate(first=Min("created_at")).order_by("first")
    ids = [row["capability_id"] for row in first]
    found = capabilities_by_id(user_id, ids)
    return [found[each] for each in ids if each in found and found[each].status == Status.ACTIVE]


def capabilities_by_id(user_id: UUID, ids: Iterable[UUID]) -> dict[UUID, Capability]:
    rows = Capability.objects.for_user(user_id).filter(pk__in=list(ids)).select_related("current")
    return {row.pk: row for row in rows}


def capabilities_named(user_id: UUID, names: Collection[str]) -> dict[str, Capability]:
    """Those of these names, whatever their status."""
    if not names:
        return {}
    rows = Capability.objects.for_user(user_id).filter(name__in=list(names)).select_related("current")
    return {row.name: row for row in rows}


def versions_of(capability: Capability) -> list[CapabilityVersion]:
    """All versions, newest first."""
    rows = CapabilityVersion.objects.for_user(capability.user_id).filter(capability=capability)
    return list(rows.order_by("-number"))


def version_waiting(capability: Capability) -> CapabilityVersion | None:
    """The newest version, where the assistant built it beside the current one, which stays in use: until the user has
    allowed what it asks for and its examples have passed."""
    return versions_waiting(capability.user_id, [capability]).get(capability.pk)


def versions_waiting(user_id: UUID, rows: Iterable[Capability]) -> dict[UUID, CapabilityVersion]:
    """The same for several capabilities of the user, by their ids; only those of which one waits are in it."""
    newer = CapabilityVersion.objects.owned_by(user_id).filter(
        capability__in=[row.pk for row in rows], number__gt=F("capability__current__number")
    )
    newest = {version.capability_id: version for version in newer.order_by("number")}
    return {
        key: version
        for key, version in newest.items()
        if version.origin == Origin.BUILDER
        and (not version.is_approved or version.is_unproven or version.test_failures)
    }


def versions_unproven() -> list[CapabilityVersion]:
    """Of all users: versions whose examples can be run now, the oldest approval first. They are the current or the newest
    of an active capability, the user has allowed what they ask for, their secrets are stored, and nobody tests them."""
    return [
        version
        for version in _untested()
        if version.is_unproven
        and (
            version.pk == version.capability.current_id or version_waiting(version.capability) == version
        )
        and not secrets_missing(version.user_id, version.secrets)
    ]


@prepared
def _untested() -> QuerySet[CapabilityVersion]:
    rows = CapabilityVersion.objects.unscoped().filter(
        CapabilityVersion.lease_free(),
        origin=Origin.BUILDER,
        approved_at__isnull=False,
        tested_at=None,
        capability__status=Status.ACTIVE,
    )
    return rows.select_related("capability__current").order_by("approved_at")


def version_get(capability: Capability, number: int) -> CapabilityVersion:
    rows = CapabilityVersion.objects.for_user(capability.user_id).filter(
        capability=capability, number=number
    )
    found = rows.first()
    if found is None:
        raise NotFound(f"{capability.name} has no version {number}.")
    return found


def executions_of(capability: Capability) -> QuerySet[Execution]:
    """Its runs, newest first."""
    return (
        Execution.objects.for_user(capability.user_id)
        .filter(capability=capability)
        .order_by("-created_at")
    )


def execution_get(user_id: UUID, execution_id: object) -> Execution:
    rows = Execution.objects.for_user(user_id).select_related("capability")
    found = rows.filter(pk=parse_id(execution_id)).first()
    if found is None:
        raise NotFound("There is no run with this id.")
    return found


def success_rate(capability: Capability) -> float | None:
    """The share of runs that gave a result, 0 to 1; None before the first."""
    return capability.successes / capability.runs if capability.runs else None


def retire_reason(capability: Capability) -> str:
    """Why it may be time to let a capability go; "" where nothing speaks against it."""
    if capability.status != Status.ACTIVE:
        return ""
    if capability.current and capability.current.test_failures:
        return "Its examples fail."
    if capability.failures_in_row >= FAILING_RUNS:
        return f"Its last {capability.failures_in_row} runs failed."
    last = capability.last_run_at or capability.created_at
    if timezone.now() - max(last, capability.updated_at) >= UNUSED_FOR:
        return f"Not used for {(timezone.now() - last).days} days."
    return ""


def may_quote_others(execution: Execution) -> bool:
    """Whether what a run gave may hold words that neither its user nor Izzy wrote.

    So it is where the version may reach hosts, and where it, or one that it was made from, came out of an archive or
    was built after others' words had been read.
    """
    versions = CapabilityVersion.objects.for_user(execution.user_id)
    ran = versions.filter(capability=execution.capability_id, number=execution.version).first()
    return ran is None or bool(ran.hosts) or others_wrote(ran)


def others_wrote(version: CapabilityVersion) -> bool:
    """Whether its files may hold words that neither its user nor Izzy wrote, by where it and those before it came from."""
    versions = CapabilityVersion.objects.for_user(version.user_id).filter(OTHERS_WROTE)
    return versions.filter(capability=version.capability_id, number__lte=version.number).exists()


def secrets_stored(user_id: UUID) -> list[Secret]:
    """The user's secrets by name; their values stay where they are."""
    return list(Secret.objects.filter(user_id=user_id).order_by("name"))


def secrets_missing(user_id: UUID, names: Iterable[str]) -> list[str]:
    """Those of these names for which the user has stored nothing."""
    stored = set(Secret.objects.filter(user_id=user_id).values_list("name", flat=True))
    return [name for name in names if name not in stored]


def secret_users(user_id: UUID) -> dict[str, list[str]]:
    """Which capabilities ask for each secret in their current version."""
    users: dict[str, list[str]] = {}
    for row in (
        Capability.objects.for_user(user_id)
        .exclude(current=None)
        .select_related("current")
        .order_by("name")
    ):
        for name in row.current.secrets if row.current else []:
            users.setdefault(name, []).append(row.name)
    return users


def capability_stats(user_id: UUID) -> dict[str, Any]:
    """`{total, by_status, waiting_for_approval, runs, failed_runs}`; runs are those of the last 30 days."""
    rows = Capability.objects.for_user(user_id)
    counts = dict(rows.order_by().values_list("status").annotate(number=Count("pk")))
    since = timezone.now() - timedelta(days=30)
    runs = Execution.objects.for_user(user_id).filter(created_at__gte=since)
    failed = Q(state=Execution.State.FAILED)
    made = list(rows.exclude(current=None).select_related("current"))
    asking = [*(row.current for row in made), *versions_waiting(user_id, made).values()]
    waiting = sum(version is not None and not version.is_approved for version in asking)
    return {
        "total": sum(counts.values()),
        "by_status": {status: counts.get(status, 0) for status in Status.values},
        "waiting_for_approval": waiting,
        **runs.aggregate(runs=Count("pk"), failed_runs=Count("pk", filter=failed)),
    }
