"""New capabilities."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from apps.capabilities.drafts import Draft, clean_description, clean_draft
from apps.capabilities.models import Capability, Origin, Status
from apps.capabilities.names import clean_name
from apps.capabilities.schemas import clean_schema
from apps.core.beforehand import beforehand
from apps.core.errors import Conflict

from .rows import capability_locked, capability_save, version_write

UNTRUSTED = "It came from an archive. Look at its files, then approve it."


@beforehand()
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
    version_write(capability, draft, origin=origin, untrusted=untrusted, approved_by=approved_by)
    waits = untrusted and approved_by is None
    capability_save(capability, Status.DISABLED if waits else Status.ACTIVE, UNTRUSTED if waits else "")
    return capability


@transaction.atomic
def capability_begin(
    *, user_id: UUID, name: str, description: str, input_schema: Mapping[str, Any]
) -> Capability:
    """A capability that is going to be built: status building, without a version. Raises as `capability_create`."""
    name = clean_name(name)
    description, schema = clean_description(description), clean_schema(dict(input_schema))
    return _new(user_id, name, description, schema)


@transaction.atomic
def capability_rebuild(
    *,
    user_id: UUID,
    capability_id: UUID,
    description: str | None = None,
    input_schema: Mapping[str, Any] | None = None,
) -> Capability:
    """Before one is built again: without a version it is building, with the new description and schema where given;
    one that has a version stays as it is until the new one comes. Raises NotFound, InvalidInput."""
    capability = capability_locked(user_id, capability_id)
    if capability.current is not None:
        return capability
    if description is not None:
        capability.description = clean_description(description)
    if input_schema is not None:
        capability.input_schema = clean_schema(dict(input_schema))
    capability_save(capability, Status.BUILDING)
    return capability


def _new(user_id: UUID, name: str, description: str, schema: dict[str, Any]) -> Capability:
    rows = Capability.objects.for_user(user_id)
    if rows.filter(name=name).exists():
        message = f"There is a capability called {name} already. Change that one, or choose another name."
        raise Conflict(message, code="name_taken", field="name")
    if rows.count() >= settings.IZZY_CAPABILITY_LIMIT:
        message = f"There are {settings.IZZY_CAPABILITY_LIMIT:,} capabilities already. Delete some first."
        raise Conflict(message, code="too_many", limit=settings.IZZY_CAPABILITY_LIMIT)
    return Capability.objects.create(
        user_id=user_id, name=name, description=description, input_schema=schema, status=Status.BUILDING
    )
