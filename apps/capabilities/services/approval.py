"""The user's yes to what a version may reach."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.capabilities.models import Capability, CapabilityVersion, Status
from apps.core.errors import Conflict

from .creation import UNTRUSTED
from .rows import capability_locked, capability_save


@transaction.atomic
def capability_approve(*, user_id: UUID, capability_id: UUID, version: int | None = None) -> Capability:
    """Allows the hosts and secrets of the current version, and lets one from an archive run.

    `version` is the number that the user was shown: Conflict (`version_changed`) where another is current by now.
    Approving again changes nothing. No tool of the assistant reaches this.
    """
    capability = capability_locked(user_id, capability_id)
    current = capability.current
    if current is None:
        raise Conflict(f"{capability.name} has no version to approve yet.", code="no_version")
    if version is not None and version != current.number:
        message = (
            f"{capability.name} was changed meanwhile: version {current.number} is current. Look at it first."
        )
        raise Conflict(message, code="version_changed", version=current.number)
    if not current.is_approved:
        CapabilityVersion.objects.for_user(user_id).filter(pk=current.pk).update(
            approved_at=timezone.now(), approved_by_id=user_id
        )
        current.refresh_from_db(from_queryset=CapabilityVersion.objects.for_user(user_id))
        if capability.status == Status.DISABLED and capability.status_reason == UNTRUSTED:
            capability_save(capability, Status.ACTIVE)
    return capability
