"""New versions of a capability."""

from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.capabilities.drafts import MAIN, REQUIREMENTS, RUN_MD, Draft, clean_draft
from apps.capabilities.files import files_read, require_untouched, run_md_of
from apps.capabilities.models import Capability, CapabilityVersion, Origin, Status
from apps.core.beforehand import beforehand
from apps.core.errors import Conflict

from .creation import UNTRUSTED
from .rows import capability_locked, capability_save, is_in_use, version_write

_FILE_OF = {"main": MAIN, "requirements": REQUIREMENTS, "run_md": RUN_MD}


@beforehand()
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
    in `capability_create`; `tested` says that its examples have passed. With `beside`, one that waits for approval leaves
    a version in use that needs none. Raises NotFound, InvalidInput, TooLarge.
    """
    capability = capability_locked(user_id, capability_id)
    draft = clean_draft(draft)
    asks = approved_by is None and bool(draft.hosts or draft.secrets)
    version = version_write(
        capability,
        draft,
        origin=origin,
        untrusted=untrusted,
        approved_by=approved_by,
        quotes_others=quotes_others,
        tested=tested,
        beside=beside and asks and is_in_use(capability),
    )
    status, reason = Status(capability.status), capability.status_reason
    if untrusted and approved_by is None:
        status, reason = Status.DISABLED, UNTRUSTED
    elif status in {Status.BUILDING, Status.FAILED}:
        status, reason = Status.ACTIVE, ""
    elif reason == UNTRUSTED:
        # That was said of a version before: this one the user has written, or looked at in the editor.
        reason = ""
    capability_save(capability, status, reason)
    return version


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
        require_untouched(
            current, capability.name, except_for=[_FILE_OF[part] for part in changes if part in _FILE_OF]
        )
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
