"""Notes that wait for review, and what they propose to do to other notes."""

from collections.abc import Mapping
from typing import Any, Unpack
from uuid import UUID

from django.db import transaction

from apps.memory.fields import MemoryFields
from apps.memory.models import Memory, Proposal, Status
from apps.memory.review.policy import status_for
from apps.memory.selectors import memory_get

from .creation import memory_create
from .provenance import Change, Provenance

INHERITED = ("tier", "kind", "importance", "tags", "category")
"""Fields a proposed text takes from its note, where nothing else is said."""


@transaction.atomic
def memory_submit(
    *,
    user_id: UUID,
    content: str,
    provenance: Provenance,
    sensitive: bool = False,
    **fields: Unpack[MemoryFields],
) -> Memory:
    """A new note that the user did not write by hand: active, or pending where it has to be reviewed."""
    status, reason = status_for(user_id=user_id, trust=provenance.trust, sensitive=sensitive)
    values: Any = {**fields, "status": str(status)}
    note = memory_create(user_id=user_id, content=content, provenance=provenance, **values)
    if status == Status.PENDING:
        _waits(note, reason, Proposal.ADD)
    return note


def proposal_instead(
    note: Memory, action: Proposal, values: Mapping[str, Any], change: Change
) -> Memory | None:
    """The pending note that proposes `values` for `note`, where the user has to see the change first; else None.

    `values` are cleaned. The same proposal, made again, is not made twice.
    """
    status, reason = status_for(user_id=note.user_id, trust=change.words, sensitive=change.sensitive)
    if status != Status.PENDING:
        return None
    wanted = {"content": note.content} | {name: getattr(note, name) for name in INHERITED} | dict(values)
    same = Memory.objects.for_user(note.user_id).filter(
        status=Status.PENDING, proposed_action=action, proposed_target=note, content=wanted["content"]
    )
    if (known := same.first()) is not None:
        return known
    fields = {name: value for name, value in wanted.items() if name in {*INHERITED, "valid_from", "valid_to"}}
    waiting = memory_create(
        user_id=note.user_id,
        content=wanted["content"],
        provenance=change.provenance,
        **{**fields, "status": str(Status.PENDING)},
    )
    _waits(waiting, reason, action, target=note, fields=sorted(values))
    return memory_get(note.user_id, waiting.pk)


def _waits(
    note: Memory,
    reason: str,
    action: Proposal,
    *,
    target: Memory | None = None,
    fields: list[str] | None = None,
) -> None:
    note.review_reason, note.proposed_action = reason, action
    note.proposed_target, note.proposed_fields = target, fields or []
    note.save(update_fields=["review_reason", "proposed_action", "proposed_target", "proposed_fields"])
