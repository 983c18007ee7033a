"""New capabilities and new versions of them, each written in one transaction with its files."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from apps.agent.services import grants_end
from apps.capabilities.catalog.drafts import (
    MAIN,
    REQUIREMENTS,
    RUN_MD,
    Draft,
    clean_description,
    clean_draft,
    clean_name,
)
from apps.capabilities.catalog.files import (
    files_read,
    files_verified,
    files_write,
    folders_remove,
    run_md_of,
)
from apps.capabilities.catalog.matching import capability_index
from apps.capabilities.catalog.schemas import clean_schema
from apps.capabilities.catalog.selectors import OTHERS_WROTE, version_waiting
from apps.capabilities.models import Capability, CapabilityVersion, Origin, Status
from apps.core.db.writing import precompute
from apps.core.errors import Conflict, NotFound
from apps.core.registries import Registry

MAX_VERSIONS = 50  # older ones go when there are more
UNTRUSTED = "It came from an archive. Look at its files, then approve it."
version_resolved: Registry[Callable[[CapabilityVersion], None]] = Registry()
"""name -> fn(version), called inside the transaction in which a version of the assistant's is approved, its examples are run for
the first time, or a newer one takes its place before that."""
_FILE_OF = {"main": MAIN, "requirements": REQUIREMENTS, "run_md": RUN_MD}


def capability_locked(user_id: UUID, capability_id: UUID) -> Capability:
    """The row, for writing. Raises NotFound."""
    rows = Capability.objects.for_user(user_id).select_for_update(of=("self",)).select_related("current")
    found = rows.filter(pk=capability_id).first()
    if found is None:
        raise NotFound("There is no capability of this name.")
    return found


def resolved(version: CapabilityVersion) -> None:
    """Tells whoever follows a version of the assistant's that it has come further."""
    for listener in version_resolved.values():
        listener(version)


def _version_write(
    capability: Capability, draft: Draft, *, approved_by: UUID | None, beside: bool = False, **facts: Any
) -> CapabilityVersion:
    """A new version with its files, made the current one unless it is to wait `beside` it; the capability's status follows.
    The files are written before the transaction ends; when it fails the next version of this number replaces them."""
    rows = CapabilityVersion.objects.for_user(capability.user_id).filter(capability=capability)
    number, now = (rows.aggregate(newest=Max("number"))["newest"] or 0) + 1, timezone.now()
    # What it was made from may be removed one day, and its words stay.
    facts["quotes_others"] = facts.get("quotes_others", False) or rows.filter(OTHERS_WROTE).exists()
    begun = [
        each for each in (capability.current, version_waiting(capability)) if each and each.is_pending
    ]
    version = version_make(
        capability,
        draft,
        number=number,
        created_at=now,
        approved_by_id=approved_by,
        approved_at=None if approved_by is None else now,
        **facts,
    )
    in_use = capability.status == Status.ACTIVE and capability.current and capability.current.is_approved
    if not (beside and in_use and version.is_pending):
        make_current(capability, version)
    _older_remove(capability)
    if version.untrusted and approved_by is None:
        capability_save(capability, Status.DISABLED, UNTRUSTED)
    elif capability.status in {Status.BUILDING, Status.FAILED}:
        capability_save(capability, Status.ACTIVE)
    else:
        # An earlier version came from an archive: this one the user has written, or looked at in the editor.
        reason = capability.status_reason
        capability_save(capability, Status(capability.status), "" if reason == UNTRUSTED else reason)
    for each in begun:
        if each.pk != capability.current_id:
            resolved(each)
    return version


def version_make(
    capability: Capability, draft: Draft, *, number: int, created_at: datetime, **facts: Any
) -> CapabilityVersion:
    """The row and files of a checked draft, in place of what a transaction that failed has left in the folder of this number."""
    path, checksums, checksum = files_write(capability, draft, number, created_at)
    return CapabilityVersion.objects.create(
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
        created_at=created_at,
        **facts,
    )


def _older_remove(capability: Capability) -> None:
    rows = CapabilityVersion.objects.for_user(capability.user_id).filter(capability=capability)
    kept = rows.order_by("-number").values_list("pk", flat=True)[:MAX_VERSIONS]
    gone = rows.exclude(pk__in=[*kept, *filter(None, [capability.current_id])])
    folders = list(gone.values_list("path", flat=True))
    gone.delete()
    folders_remove(*folders)


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
    capability_index(capability)


@precompute()
@transaction.atomic
def capability_create(
    *,
    user_id: UUID,
    name: str,
    draft: Draft,
    origin: Origin = Origin.USER,
    untrusted: bool = False,
    approved_by: UUID | None = None,
) -> Capability:
    """A capability with its first version: active, though it waits for approval where it asks for hosts or secrets.

    An `untrusted` one is disabled until it is approved. `approved_by` says that this user has allowed exactly these
    hosts and secrets already. Raises InvalidInput, TooLarge, Conflict (`name_taken`, `too_many`).
    """
    name = clean_name(name)
    draft = clean_draft(draft)
    capability = _new(user_id, name, draft.description, dict(draft.input_schema))
    _version_write(capability, draft, approved_by=approved_by, origin=origin, untrusted=untrusted)
    return capability


@transaction.atomic
def capability_begin(
    *, user_id: UUID, name: str, description: str, input_schema: Mapping[str, Any]
) -> Capability:
    """A capability that is going to be built. Without a version it is building, with this description and schema; one of this
    name that has a version stays as it is until the new one comes. Raises as `capability_create`."""
    name = clean_name(name)
    description, schema = clean_description(description), clean_schema(dict(input_schema))
    found = Capability.objects.for_user(user_id).select_for_update().filter(name=name).first()
    if found is None:
        return _new(user_id, name, description, schema)
    if found.current_id is None:
        found.description, found.input_schema = description, schema
        capability_save(found, Status.BUILDING)
    return found


def _new(user_id: UUID, name: str, description: str, schema: dict[str, Any]) -> Capability:
    rows = Capability.objects.for_user(user_id)
    if rows.filter(name=name).exists():
        message = (
            f"There is a capability called {name} already. Change that one, or choose another name."
        )
        raise Conflict(message, code="name_taken", field="name")
    if rows.count() >= settings.IZZY_CAPABILITY_LIMIT:
        message = (
            f"There are {settings.IZZY_CAPABILITY_LIMIT:,} capabilities already. Delete some first."
        )
        raise Conflict(message, code="too_many", limit=settings.IZZY_CAPABILITY_LIMIT)
    return Capability.objects.create(
        user_id=user_id, name=name, description=description, input_schema=schema, status=Status.BUILDING
    )


@precompute()
@transaction.atomic
def version_add(
    *,
    user_id: UUID,
    capability_id: UUID,
    draft: Draft,
    origin: Origin = Origin.USER,
    untrusted: bool = False,
    approved_by: UUID | None = None,
    quotes_others: bool = False,
    tested: bool = False,
    beside: bool = False,
) -> CapabilityVersion:
    """A new version, which becomes the current one; the capability is active then, a disabled one stays disabled.

    Where it asks for hosts or secrets it waits for approval, whatever earlier versions were allowed. `approved_by` as
    in `capability_create`; `tested` says that its examples have passed. With `beside`, one of the builder's
    that waits for approval, or for its test after that, leaves a version in use. Raises NotFound, InvalidInput, TooLarge.
    """
    return _version_write(
        capability_locked(user_id, capability_id),
        clean_draft(draft),
        approved_by=approved_by,
        beside=beside,
        origin=origin,
        untrusted=untrusted,
        quotes_others=quotes_others,
        tested_at=timezone.now() if tested else None,
    )


@transaction.atomic
def capability_update(
    *, user_id: UUID, capability_id: UUID, origin: Origin = Origin.USER, **changes: Any
) -> CapabilityVersion:
    """A new version that differs from the current one in the given parts of a `Draft`.

    A RUN.md that was generated is generated anew. Raises as `version_add`, Conflict (`no_version`) where there is
    nothing to change yet, and CapabilityRefused (`tampered`) where a file that is to stay as it was is no longer that.
    """
    capability = capability_locked(user_id, capability_id)
    draft = replace(draft_of(capability), **changes)
    current = capability.current
    if current is not None:
        # An edit must not make what was slipped in on disk into a version that runs.
        kept = [file for part, file in _FILE_OF.items() if part not in changes]
        files_verified(current, capability.name, kept)
    untrusted = bool(current and current.untrusted and not current.is_approved)
    return version_add(
        user_id=user_id, capability_id=capability_id, draft=draft, origin=origin, untrusted=untrusted
    )


def draft_of(capability: Capability, version: CapabilityVersion | None = None) -> Draft:
    """The content of a version (the current one) as a draft, with the files as they are on disk now."""
    version = version or capability.current
    if version is None:
        raise Conflict(f"{capability.name} has no version yet.", code="no_version")
    contents = files_read(version.path)
    draft = Draft(
        description=version.description,
        input_schema=version.input_schema,
        main=contents[MAIN],
        requirements=contents[REQUIREMENTS],
        output_schema=version.output_schema,
        tags=version.tags,
        hosts=version.hosts,
        secrets=version.secrets,
        examples=version.examples,
    )
    own = contents[RUN_MD]
    return draft if own == run_md_of(capability.name, draft) else replace(draft, run_md=own)
