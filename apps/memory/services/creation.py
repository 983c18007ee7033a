"""New notes, one or many."""

from collections.abc import Mapping, Sequence
from typing import Any, Unpack
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.core.db.writing import insert_all, precompute
from apps.core.errors import InvalidInput, IzzyError, TooLarge
from apps.memory.fields import BULK_LIMIT, TIER_DEFAULTS, MemoryDraft, MemoryFields, clean_changes
from apps.memory.indexing.notes import notes_index
from apps.memory.models import Memory, Tier
from apps.memory.models.folding import folded
from apps.memory.selectors import current_cycle
from apps.search.services import documents_prepare

from .provenance import FROM_USER, Provenance


@transaction.atomic
def memory_create(
    *, user_id: UUID, content: str, provenance: Provenance = FROM_USER, **fields: Unpack[MemoryFields]
) -> Memory:
    """A new note, searchable when this returns. Long-term unless `tier` says otherwise."""
    values = clean_changes({"content": content, **fields})
    return _store(user_id, [values], provenance)[0]


def memory_bulk_create(
    *, user_id: UUID, drafts: Sequence[MemoryDraft], provenance: Provenance = FROM_USER
) -> list[Memory]:
    """Up to 1,000 notes at once, all or none; searchable when this returns.

    The error of one draft carries its place in the list as `extra.index`.
    """
    if not drafts:
        raise InvalidInput("There is no note in the list.", code="empty_list")
    if len(drafts) > BULK_LIMIT:
        raise TooLarge(f"At most {BULK_LIMIT:,} notes at once.", code="too_many", limit=BULK_LIMIT)
    cleaned = [_clean_draft(index, draft) for index, draft in enumerate(drafts)]
    with precompute():
        # Reading them takes ten times as long as writing them, and would hold up all other writers.
        documents_prepare(user_id=user_id, texts=[draft["content"] for draft in cleaned])
        with transaction.atomic():
            return _store(user_id, cleaned, provenance)


def _clean_draft(index: int, draft: object) -> dict[str, Any]:
    try:
        if not isinstance(draft, Mapping):
            raise InvalidInput("A note must be an object with content.", code="wrong_type")
        return clean_changes({"content": None, **draft})
    except IzzyError as error:
        error.extra["index"] = index
        raise


def _store(user_id: UUID, drafts: Sequence[dict[str, Any]], provenance: Provenance) -> list[Memory]:
    """Write notes made of cleaned values, and make them searchable."""
    now, cycle = timezone.now(), current_cycle(user_id)
    notes = []
    for draft in drafts:
        priority, decay_rate = TIER_DEFAULTS[Tier(draft.get("tier", Tier.LONG_TERM))]
        values = {"priority": priority, "decay_rate": decay_rate, "tags": [], **draft}
        notes.append(
            Memory(
                user_id=user_id,
                origin=provenance.origin,
                trust=provenance.trust,
                source_conversation_id=provenance.conversation_id,
                source_message_id=provenance.message_id,
                priority_cycle=cycle,
                created_at=now,
                updated_at=now,
                **values,
                **folded(values),
            )
        )
    insert_all(notes)
    notes_index(user_id, notes)
    return notes
