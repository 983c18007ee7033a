"""The life of a capability: the user's yes, tests of its examples, switching on and off, going back, deleting."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.agent.services import grants_end
from apps.capabilities.catalog.files import (
    ROOT,
    CapabilityRefused,
    files_verified,
    folders_remove,
)
from apps.capabilities.catalog.selectors import version_get, version_waiting, versions_of
from apps.capabilities.catalog.versions import (
    UNTRUSTED,
    capability_locked,
    capability_save,
    make_current,
    resolved,
)
from apps.capabilities.models import Capability, CapabilityVersion, Origin, Status
from apps.core.errors import Conflict, NotFound
from apps.search.documents import Source
from apps.search.services import documents_remove

MAX_REASON_CHARS = 2_000


@transaction.atomic
def capability_approve(*, user_id: UUID, capability_id: UUID, version: int | None = None) -> Capability:
    """Allows the hosts and secrets of the current version, or of a newer one that waits beside it; lets one from an
    archive run.

    `version` is the number that the user was shown: Conflict (`version_changed`) where neither has it by now. A version that
    the assistant built before it was allowed to try it is tested next (`apps.capabilities.runs.examples`); one that waits beside
    a version in use takes its place when its examples pass. Approving again changes nothing. No tool of the assistant
    reaches this.
    """
    capability = capability_locked(user_id, capability_id)
    chosen = _chosen(capability, version)
    if chosen.is_approved:
        return capability
    CapabilityVersion.objects.for_user(user_id).filter(pk=chosen.pk).update(
        approved_at=timezone.now(), approved_by_id=user_id
    )
    chosen.refresh_from_db(from_queryset=CapabilityVersion.objects.for_user(user_id))
    if chosen.pk != capability.current_id and not chosen.is_unproven:
        make_current(capability, chosen)
        capability_save(capability, Status(capability.status), capability.status_reason)
    elif capability.status == Status.DISABLED and capability.status_reason == UNTRUSTED:
        capability_save(capability, Status.ACTIVE)
    if chosen.origin == Origin.BUILDER:
        resolved(chosen)
    return capability


def _chosen(capability: Capability, number: int | None) -> CapabilityVersion:
    """The version that is meant. Raises Conflict."""
    current, waiting = capability.current, version_waiting(capability)
    if current is None:
        raise Conflict(f"{capability.name} has no version to approve yet.", code="no_version")
    if waiting is not None and (number == waiting.number or (number is None and current.is_approved)):
        return waiting
    if number not in {None, current.number}:
        message = f"{capability.name} was changed meanwhile: version {current.number} is current. Look at it first."
        raise Conflict(message, code="version_changed", version=current.number)
    return current


@transaction.atomic
def version_tested(*, user_id: UUID, version_id: UUID, failures: list[str]) -> None:
    """Notes what the examples of a version gave. One that had waited for this beside the current version takes its place
    where all passed; where one failed it stays aside, and the page says so. Nothing where the version is gone."""
    rows = CapabilityVersion.objects.for_user(user_id)
    found = rows.filter(pk=version_id).first()
    if found is None:
        return
    # Another test of it may end at the same time.
    capability = capability_locked(user_id, found.capability_id)
    version = rows.get(pk=version_id)
    first = version.is_unproven
    version.tested_at, version.test_failures = (timezone.now() if version.examples else None), failures
    version.save(update_fields=["tested_at", "test_failures"])
    if not first:
        return
    newer = rows.filter(capability=capability, number__gt=version.number)
    if version.pk != capability.current_id and newer.exists():
        return  # it was overtaken, and that was told
    if not failures and version.pk != capability.current_id:
        make_current(capability, version)
        capability_save(capability, Status(capability.status), capability.status_reason)
    resolved(version)


@transaction.atomic
def capability_enable(*, user_id: UUID, capability_id: UUID) -> Capability:
    """Active again. Conflict (`no_version`) where nothing was ever built, `building` while it is; one from an archive
    has to be approved first (`not_approved`)."""
    capability = capability_locked(user_id, capability_id)
    if capability.status == Status.ACTIVE:
        return capability
    if capability.current is None:
        if capability.status == Status.BUILDING:
            raise CapabilityRefused(
                "building", capability.name, f"{capability.name} is still being built."
            )
        raise Conflict(f"{capability.name} has no version that could run.", code="no_version")
    if capability.current.untrusted and not capability.current.is_approved:
        raise CapabilityRefused(
            "not_approved", capability.name, f"{capability.name} came from an archive. Approve it first."
        )
    capability.failures_in_row = 0
    capability_save(capability, Status.ACTIVE)
    return capability


@transaction.atomic
def capability_disable(*, user_id: UUID, capability_id: UUID, reason: str = "") -> Capability:
    """Out of use until it is enabled again. Conflict (`building`) while its first version is being built."""
    capability = capability_locked(user_id, capability_id)
    if capability.status == Status.BUILDING:
        raise CapabilityRefused("building", capability.name, f"{capability.name} is still being built.")
    if capability.status != Status.DISABLED:
        capability_save(capability, Status.DISABLED, reason[:MAX_REASON_CHARS])
    return capability


@transaction.atomic
def capability_fail(*, user_id: UUID, capability_id: UUID, reason: str) -> Capability:
    """Marks it as failed, with the reason that the page and the model show.

    One that has a version keeps its status: a build failed, not the tool. While it says building (a crash in between)
    it is put back into use.
    """
    capability = capability_locked(user_id, capability_id)
    if capability.current is None:
        capability_save(capability, Status.FAILED, reason[:MAX_REASON_CHARS])
    elif capability.status == Status.BUILDING:
        capability_save(capability, Status.ACTIVE)
    return capability


@transaction.atomic
def capability_rollback(*, user_id: UUID, capability_id: UUID, number: int | None = None) -> Capability:
    """Makes an earlier version the current one (without a number: the one before); newer ones stay beside it.

    What that version was allowed holds still. Raises NotFound for an unknown number, Conflict where there is nothing
    earlier (`no_version`) or its files were changed on disk (`tampered`).
    """
    capability = capability_locked(user_id, capability_id)
    if number is None:
        now = capability.current.number if capability.current else 0
        earlier = [version.number for version in versions_of(capability) if version.number < now]
        if not earlier:
            raise Conflict(f"{capability.name} has no earlier version.", code="no_version")
        number = max(earlier)
    version = version_get(capability, number)
    files_verified(version, capability.name)
    make_current(capability, version)
    status, reason = Status(capability.status), capability.status_reason
    if version.untrusted and not version.is_approved:
        status, reason = Status.DISABLED, UNTRUSTED
    elif status in {Status.FAILED, Status.BUILDING}:
        status, reason = Status.ACTIVE, ""
    capability_save(capability, status, reason)
    if version.is_pending:  # it had been overtaken
        resolved(version)
    return capability


@transaction.atomic
def capability_delete(*, user_id: UUID, capability_id: UUID) -> None:
    """Removes it with its versions, files and runs, for good."""
    capability = capability_locked(user_id, capability_id)
    documents_remove(user_id=user_id, source=Source.CAPABILITY, source_ids=[capability.pk])
    Capability.objects.for_user(user_id).filter(pk=capability.pk).delete()
    grants_end(user_id=user_id, capability_id=capability.pk)
    folders_remove(f"{ROOT}/{capability.pk}")


@transaction.atomic
def version_delete(*, user_id: UUID, version_id: UUID) -> None:
    """Removes one version with its files; a capability whose current one it was is out of use then. Raises NotFound."""
    version = CapabilityVersion.objects.for_user(user_id).filter(pk=version_id).first()
    if version is None:
        raise NotFound("There is no such version.")
    capability = capability_locked(user_id, version.capability_id)
    if capability.current_id == version_id:
        capability.current, capability.path = None, ""
        capability_save(capability, Status.DISABLED, "The version in use was deleted.")
    CapabilityVersion.objects.for_user(user_id).filter(pk=version_id).delete()
    folders_remove(version.path)
    waiting = version_waiting(capability)
    if waiting and waiting.is_pending and waiting.number < version.number:
        resolved(waiting)  # nothing is newer any more


def user_forget(*, user_id: UUID) -> int:
    """Removes the files of all capabilities before the account's rows go; returns how many capabilities."""
    ids = Capability.objects.for_user(user_id).values_list("pk", flat=True)
    folders_remove(*(f"{ROOT}/{each}" for each in ids))
    return len(ids)
