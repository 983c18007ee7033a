"""Applies a test of a version's examples to it."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.capabilities.hooks import tell_settled
from apps.capabilities.models import CapabilityVersion, Status

from .rows import capability_locked, capability_save, make_current


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
    if not failures and version.pk != capability.current_id and _is_newest(version):
        make_current(capability, version)
        capability_save(capability, Status(capability.status), capability.status_reason)
    tell_settled(version)


def _is_newest(version: CapabilityVersion) -> bool:
    newer = CapabilityVersion.objects.for_user(version.user_id).filter(
        capability_id=version.capability_id, number__gt=version.number
    )
    return not newer.exists()
