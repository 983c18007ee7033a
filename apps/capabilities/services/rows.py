"""Helpers of the catalog's services: locking a row and writing a version."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.agent.grants import grants_end
from apps.capabilities.drafts import Draft
from apps.capabilities.files import (
    checksums_of,
    contents_of,
    files_write,
    folders_remove,
    manifest_of,
    version_path,
)
from apps.capabilities.indexing import capabilities_index
from apps.capabilities.models import Capability, CapabilityVersion, Origin, Status
from apps.core.errors import NotFound

MAX_VERSIONS = 50
"""Older ones go when there are more."""


def capability_locked(user_id: UUID, capability_id: UUID) -> Capability:
    """The row, for writing. Raises NotFound."""
    rows = Capability.objects.for_user(user_id).select_for_update(of=("self",)).select_related("current")
    found = rows.filter(pk=capability_id).first()
    if found is None:
        raise NotFound("There is no capability of this name.")
    return found


def version_write(
    capability: Capability,
    draft: Draft,
    *,
    origin: Origin,
    untrusted: bool,
    approved_by: UUID | None,
    quotes_others: bool = False,
    tested: bool = False,
    beside: bool = False,
) -> CapabilityVersion:
    """A new version with its files, made the current one unless it is to wait `beside` it. The files are written before
    the transaction ends; when it fails the next version of this number replaces them."""
    number = _next_number(capability)
    now = timezone.now()
    manifest = manifest_of(
        capability.name, draft, number=number, created_at=capability.created_at, updated_at=now
    )
    contents = contents_of(capability.name, draft, manifest)
    checksums, checksum = checksums_of(contents)
    path = version_path(capability.pk, number)
    files_write(path, contents)
    version = CapabilityVersion(
        user_id=capability.user_id,
        capability=capability,
        number=number,
        description=draft.description,
        input_schema=dict(draft.input_schema),
        output_schema=dict(draft.output_schema),
        tags=list(draft.tags),
        hosts=list(draft.hosts),
        secrets=list(draft.secrets),
        examples=[dict(example) for example in draft.examples],
        path=path,
        checksums=checksums,
        checksum=checksum,
        origin=origin,
        untrusted=untrusted,
        quotes_others=quotes_others,
        tested_at=now if tested else None,
        created_at=now,
    )
    if approved_by is not None:
        version.approved_by_id, version.approved_at = approved_by, now
    version.save(force_insert=True)
    if not beside:
        make_current(capability, version)
    _prune(capability)
    return version


def is_in_use(capability: Capability) -> bool:
    """Whether its current version may run."""
    current = capability.current
    return capability.status == Status.ACTIVE and current is not None and current.is_approved


def make_current(capability: Capability, version: CapabilityVersion) -> None:
    """Takes over what the version says; the caller sets the status and saves."""
    capability.current = version
    capability.path = version.path
    capability.description = version.description
    capability.input_schema = version.input_schema
    capability.output_schema = version.output_schema
    capability.tags = version.tags
    capability.failures_in_row = 0
    grants_end(user_id=capability.user_id, capability_id=capability.pk, version=version.number)


def capability_save(capability: Capability, status: Status, reason: str = "") -> None:
    """Stores the row with its status and brings the index in step."""
    capability.status, capability.status_reason = status, reason
    capability.updated_at = timezone.now()
    capability.save()
    capabilities_index(capability.user_id, [capability])


def _next_number(capability: Capability) -> int:
    newest = CapabilityVersion.objects.for_user(capability.user_id).filter(capability=capability)
    return (newest.order_by("-number").values_list("number", flat=True).first() or 0) + 1


def _prune(capability: Capability) -> None:
    rows = CapabilityVersion.objects.for_user(capability.user_id).filter(capability=capability)
    kept = rows.order_by("-number").values_list("pk", flat=True)[:MAX_VERSIONS]
    gone = rows.exclude(pk__in=[*kept, *filter(None, [capability.current_id])])
    paths = list(gone.values_list("path", flat=True))
    gone.delete()
    transaction.on_commit(lambda: folders_remove(paths))
