"""Several notes become one."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.core.errors import Conflict, InvalidInput, NotFound
from apps.core.ids import note_id
from apps.memory.fields import MAX_TAGS, TIER_DEFAULTS, clean_changes, clean_content
from apps.memory.models import Action, Memory, Proposal, Status, Tier, Trust
from apps.memory.selectors import memory_get
from apps.memory.trust import least_trust

from .changes import change_apply
from .proposals import proposal_instead
from .provenance import BY_USER, Change
from .superseding import supersede_with

MAX_MERGED = 20
"""Notes that one merge takes in."""
MAX_IMPORTANCE = 5


@transaction.atomic
def memory_absorb(
    *,
    user_id: UUID,
    memory_id: UUID,
    content: str | None,
    trust: Trust,
    importance: int | None = None,
    tags: Collection[str] = (),
    change: Change,
) -> Memory:
    """Let a note take in what was found to say the same; it keeps its id.

    It gets the merged text where one is given, one step more importance (at most 5, at least `importance`), the tags it
    does not have, and is as fresh as a new one. `trust` is that of what is taken in: with a new text the note is trusted as the least of
    both, without one its words are what they were. Untrusted words make no note more important: without a text they
    change nothing. Where the user has to see the change first, what is returned is the pending note that proposes it.
    """
    note = memory_get(user_id, memory_id, lock=True)
    if note.status == Status.PENDING:
        raise Conflict("This note waits for review; decide on it first.", code="waits_for_review")
    text = note.content if content is None else clean_content(content)
    if text == note.content and trust == Trust.UNTRUSTED:
        return note
    values = clean_changes(
        {
            "content": text,
            "importance": min(max(note.importance + 1, importance or 1), MAX_IMPORTANCE),
            "tags": joined_tags([note.tags, list(tags)]),
            "priority": TIER_DEFAULTS[Tier(note.tier)][0],
        }
    )
    if text != note.content:
        waiting = proposal_instead(note, Proposal.MERGE, values, replace(change, trust=trust))
        if waiting is not None:
            return waiting
        values["trust"] = least_trust(note.trust, trust)
    change_apply(note, values, Action.MERGED, change)
    return note


@transaction.atomic
def memory_merge(
    *,
    user_id: UUID,
    into_id: UUID,
    from_ids: Sequence[UUID],
    content: str | None = None,
    change: Change = BY_USER,
) -> Memory:
    """Make one note of several: `into_id` stays and gets the text given, else all texts, one below the other.

    It takes the tags of all, the highest importance, the least trust. The others are superseded by it and keep their
    history; `memory_undo` of this change brings them back. For the user's own hand: no proposal is made.

    Raises NotFound for an unknown note, InvalidInput for an empty list or one that names a note twice, Conflict for
    notes that are not active.
    """
    wanted = [into_id, *from_ids]
    if len(wanted) < 2 or len(set(wanted)) != len(wanted):
        raise InvalidInput("Name at least two different notes.", field="notes")
    if len(wanted) > MAX_MERGED:
        raise InvalidInput(
            f"At most {MAX_MERGED} notes can be merged at once.", field="notes", limit=MAX_MERGED
        )
    found = Memory.objects.owned_by(user_id).select_for_update().in_bulk(wanted)
    if len(found) < len(wanted):
        raise NotFound("There is no note with this id.")
    notes = [found[key] for key in wanted]
    if idle := next((note for note in notes if note.status != Status.ACTIVE), None):
        message = f"Only active notes can be merged; {note_id(idle.pk)} is not."
        raise Conflict(message, code="not_active")
    into, *others = notes
    values = clean_changes(
        {
            "content": "\n".join(note.content for note in notes) if content is None else content,
            "importance": max(note.importance for note in notes),
            "tags": joined_tags([note.tags for note in notes]),
        }
    )
    values["trust"] = least_trust(*(note.trust for note in notes))
    merged = {"merged": [str(note.pk) for note in others]}
    change_apply(into, values, Action.MERGED, change, more=merged)
    for note in others:
        supersede_with(note, into, at=into.updated_at, change=change, action=Action.MERGED)
    return into


def joined_tags(lists: Sequence[Sequence[Any]]) -> list[str]:
    """All tags, each once whatever its case, as many as a note may have."""
    unique: dict[str, str] = {}
    for tag in (str(tag) for tags in lists for tag in tags):
        unique.setdefault(tag.casefold(), tag)
    return list(unique.values())[:MAX_TAGS]
