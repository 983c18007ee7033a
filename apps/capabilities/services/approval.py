"""The user's yes to what a version may reach."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.capabilities.hooks import tell_settled
from apps.capabilities.models import Capability, CapabilityVersion, Origin, Status
from apps.capabilities.selectors import version_waiting
from apps.core.errors import Conflict

from .creation import UNTRUSTED
from .rows import capability_locked, capability_save, make_current


@transaction.atomic
def capability_approve(*, user_id: UUID, capability_id: UUID, version: int | None = None) -> Capability:
    """Allows the hosts and secrets of the current version, or of a newer one that waits beside it; lets one from an
    archive run.

    `version` is the number that the user was shown: Conflict (`version_changed`) where neither has it by now. A version that
    the assistant built before it was allowed to try it is tested next (`apps.capabilities.proving`); one that waits beside
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
        tell_settled(chosen)
    return capability


def _chosen(capability: Capability, number: int | None) -> CapabilityVersion:
    """The version that is meant. Raises Conflict."""
    current, waiting = capability.current, version_waiting(capability)
    if current is None:
        raise Conflict(f"{capability.name} has no version to approve yet.", code="no_version")
    if waiting is not None and (number == waiting.number or (number is None and current.is_approved)):
        return waiting
    if number not in {None, current.number}:
        message = (
            f"{capability.name} was changed meanwhile: version {current.number} is current. Look at it first."
        )
        raise Conflict(message, code="version_changed", version=current.number)
    return current
