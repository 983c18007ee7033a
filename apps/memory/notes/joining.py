"""Several notes at once: links, one in the place of another, one made of many, contradictions resolved."""

from collections.abc import Collection, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.core.db.writing import users_of
from apps.core.errors import Conflict, InvalidInput, NotFound
from apps.core.ids import note_id
from apps.core.jobs.fair import one_by_one
from apps.core.text import clean_text, fold
from apps.memory.models import (
    Action,
    Memory,
    MemoryEdge,
    Origin,
    Proposal,
    Relation,
    Status,
    Tier,
    Trust,
)
from apps.memory.notes.selectors import memory_get, open_contradictions
from apps.memory.trust import least_trust

from .changes import OVERTAKEN, change_apply, ended_by, is_replaced, plans_call_off
from .creation import INHERITED, notes_store, proposal_instead
from .fields import MAX_TAGS, TIER_DEFAULTS, clean_changes, clean_content
from .occasions import occasions_asked, occasions_typed
from .revisions import BY_USER, Change

MAX_RELATION_CHARS = 64


@transaction.atomic
def edge_create(
    *,
    user_id: UUID,
    source_id: UUID,
    target_id: UUID,
    relation: str = Relation.RELATED,
    weight: float = 1.0,
) -> MemoryEdge:
    """Link two notes of the user; linking them again with the same relation sets the weight.

    `relation` is one of `Relation` or any other text of up to 64 characters, `weight` a number from 0 to 1.
    """
    relation = clean_text(relation, field="relation", max_chars=MAX_RELATION_CHARS)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= 1:
        raise InvalidInput("weight must be a number from 0 to 1.", field="weight")
    if source_id == target_id:
        raise InvalidInput("A note cannot be linked to itself.", field="target")
    if Memory.objects.owned_by(user_id).filter(pk__in=[source_id, target_id]).count() != 2:
        raise NotFound
    edge, _ = MemoryEdge.objects.unscoped().update_or_create(
        source_id=source_id,
        target_id=target_id,
        relation=relation,
        defaults={"weight": weight},
        create_defaults={"weight": weight, "user_id": user_id},
    )
    return edge


def edge_ensure(user_id: UUID, source_id: UUID, target_id: UUID, relation: Relation) -> None:
    """Link two notes of the user, which must be theirs, unless they are linked so already."""
    MemoryEdge.objects.unscoped().get_or_create(
        source_id=source_id, target_id=target_id, relation=relation, defaults={"user_id": user_id}
    )


@transaction.atomic
def edge_delete(*, user_id: UUID, source_id: UUID, edge_id: UUID) -> None:
    """Remove a link that starts or ends at the note `source_id`."""
    of_note = Q(source_id=source_id) | Q(target_id=source_id)
    gone, _ = MemoryEdge.objects.for_user(user_id).filter(of_note, pk=edge_id).delete()
    if not gone:
        raise NotFound


@transaction.atomic
def memory_supersede(
    *,
    user_id: UUID,
    memory_id: UUID,
    content: str,
    change: Change = BY_USER,
    **fields: object,
) -> Memory:
    """A new note in the place of an old one; returns the new one, which inherits what `fields` leave out.

    The old note is superseded: out of search but as of a time before `valid_from` (now unless given; where it lies
    ahead the old note holds until then). An old note that was replaced already stands for the newest in its chain.
    Trust is that of the change's words. Where the user has to see the change first, what is returned is the pending note
    that proposes it, and the old one stays as it is.

    Raises NotFound for an unknown note, Conflict where it, or what replaced it, waits for review or was deleted.
    """
    old = newest_of(memory_get(user_id, memory_id, lock=True))
    if old.status == Status.PENDING:
        raise Conflict("This note waits for review; decide on it first.", code="waits_for_review")
    values = clean_changes({"valid_from": None, **fields, "content": content})
    start: datetime | None = values["valid_from"]
    if not change.by_hand:
        waiting = proposal_instead(old, Proposal.SUPERSEDE, values, change)
        if waiting is not None:
            return waiting
    inherited: dict[str, Any] = {name: getattr(old, name) for name in INHERITED}
    if not (change.by_hand and "occasions" in values):
        values |= occasions_typed(old)
    (new,) = notes_store(user_id, [{**inherited, **values}], change)
    supersede_with(old, new, at=start or new.created_at, change=change, made=True)
    return new


def newest_of(note: Memory) -> Memory:
    """The end of the chain of notes that replaced one another, locked for a change. Raises Conflict where it is gone."""
    seen = {note.pk}
    notes = Memory.objects.for_user(note.user_id).select_for_update()
    while is_replaced(note) and note.superseded_by_id not in seen:
        later = notes.filter(supersedes=note.pk).first()
        if later is None:
            message = (
                "This note was replaced by one that has been deleted since. Restore one of them first."
            )
            raise Conflict(message, code="replaced")
        seen.add(later.pk)
        note = later
    return note


def supersede_with(
    old: Memory,
    new: Memory,
    *,
    at: datetime,
    change: Change,
    action: Action = Action.SUPERSEDED,
    made: bool = False,
) -> None:
    """Let `old` give way to `new` at a time: status, validity, link and revision.

    `made` says that `new` came into being for this, so that undoing it takes it away again.
    """
    values = ended_by(old, new, at, since=old.valid_from, until=old.valid_to)
    never_begins = old.valid_from is not None and values["valid_from"] is None
    change_apply(old, values, action, change, more={"by": str(new.pk), "made": made})
    edge_ensure(old.user_id, new.pk, old.pk, Relation.SUPERSEDES)
    if never_begins:
        takes_over = made or action == Action.MERGED
        _plans_hand_over(old, new if takes_over else None, at=at, change=change, made=made)


def _plans_hand_over(
    old: Memory, new: Memory | None, *, at: datetime, change: Change, made: bool
) -> None:
    """Have the notes that `old` was to replace, and never will, give way to what stands in its place; without one they hold on."""
    rows = Memory.objects.for_user(old.user_id).select_for_update()
    planned = list(rows.filter(superseded_by=old, status=Status.ACTIVE).values_list("pk", flat=True))
    plans_call_off(old.user_id, [old.pk], change, reason=OVERTAKEN)
    if new is None:
        return
    more = {"by": str(new.pk), "made": made, "instead_of": str(old.pk)}
    for note in rows.filter(pk__in=planned).exclude(pk=new.pk):
        values = ended_by(note, new, at, since=note.valid_from, until=note.valid_to)
        change_apply(note, values, Action.SUPERSEDED, change, more=more)
        edge_ensure(note.user_id, new.pk, note.pk, Relation.SUPERSEDES)


def superseded_due() -> int:
    """The sweep: notes whose replacement has begun to hold become superseded; returns how many. Where it is not there any more
    they hold on."""
    due = Memory.objects.unscoped().filter(
        status=Status.ACTIVE, superseded_by__isnull=False, valid_to__lte=timezone.now()
    )
    return sum(one_by_one(users_of(due), _supersede))


@transaction.atomic
def _supersede(whose: tuple[UUID, QuerySet[Memory]]) -> int:
    user_id, due = whose
    change = Change(
        actor=Origin.ASSISTANT, trust=Trust.ASSISTANT, reason="what replaces it holds by now"
    )
    away = due.exclude(superseded_by__status__in=[Status.ACTIVE, Status.SUPERSEDED])
    plans_call_off(user_id, list(away.values_list("superseded_by_id", flat=True)), change)
    notes = list(due.select_for_update())
    for note in notes:
        change_apply(note, {"status": Status.SUPERSEDED}, Action.SUPERSEDED, change)
    return len(notes)


@transaction.atomic
def contradiction_resolve(
    *, user_id: UUID, edge_id: UUID, keep_id: UUID | None, change: Change = BY_USER
) -> None:
    """Settle an open contradiction: the note `keep_id` supersedes the other, or (None) both are true and only related.

    Undoing the supersession opens it again. Raises NotFound for what is no open contradiction of the user, InvalidInput
    for a note that is not one of the two.
    """
    edge = open_contradictions(user_id).select_for_update(of=("self",)).filter(pk=edge_id).first()
    if edge is None:
        raise NotFound("There is no open contradiction with this id.")
    if keep_id is None:
        edge_ensure(user_id, edge.source_id, edge.target_id, Relation.RELATED)
        edge.delete()
        return
    if keep_id not in {edge.source_id, edge.target_id}:
        raise InvalidInput("keep must be one of the two notes.", field="keep")
    other_id = edge.target_id if keep_id == edge.source_id else edge.source_id
    notes = Memory.objects.owned_by(user_id).select_for_update().in_bulk([keep_id, other_id])
    if len(notes) < 2:  # one was deleted between the two reads
        raise NotFound("There is no open contradiction with this id.")
    supersede_with(notes[other_id], notes[keep_id], at=timezone.now(), change=change)


MAX_MERGED = 20
"""Notes that one merge takes in."""
MAX_IMPORTANCE = 5


@transaction.atomic
def memory_absorb(
    *,
    user_id: UUID,
    memory_id: UUID,
    content: str | None,
    importance: int | None = None,
    tags: Collection[str] = (),
    occasions: Sequence[str] = (),
    change: Change,
) -> Memory:
    """Let a note take in what was found to say the same; it keeps its id.

    It gets the merged text where one is given, one step more importance (at most 5, at least `importance`), the tags it
    does not have, and is as fresh as a new one. With a new text it is trusted as the least of its own and the change's
    words, and has these occasions where some are given, without one its words are what they were. Untrusted words make no note more important: without a text they
    change nothing. Where the user has to see the change first, what is returned is the pending note that proposes it.
    """
    note = memory_get(user_id, memory_id, lock=True)
    if note.status == Status.PENDING:
        raise Conflict("This note waits for review; decide on it first.", code="waits_for_review")
    text = note.content if content is None else clean_content(content)
    if text == note.content and change.trust == Trust.UNTRUSTED:
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
        waiting = proposal_instead(note, Proposal.MERGE, values, change)
        if waiting is not None:
            return waiting
        values["trust"] = least_trust(note.trust, change.trust)
        if occasions:
            values = occasions_asked(note, {**values, "occasions": list(occasions)}, change)
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

    It takes the tags of all, the highest importance, the least trust, the widest validity, and the occasions that the user typed for any. The others are superseded by it and keep their
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
    values |= {"trust": least_trust(*(note.trust for note in notes)), **occasions_typed(*notes)}
    values |= validity_joined(into, notes)
    merged = {"merged": [str(note.pk) for note in others]}
    at = timezone.now()
    # Those that are to be replaced first, as long as that is planned; what replaces one is younger.
    planned = sorted((note for note in others if note.superseded_by_id), key=attrgetter("pk"))
    for note in planned:
        supersede_with(note, into, at=at, change=change, action=Action.MERGED)
    change_apply(into, values, Action.MERGED, change, more=merged)
    for note in others:
        if note not in planned:
            supersede_with(note, into, at=at, change=change, action=Action.MERGED)
    return into


def validity_joined(into: Memory, notes: Sequence[Memory]) -> dict[str, datetime | None]:
    """Since when and until when a note holds that takes in these (itself among them): as long as any of them. What is to take
    its place does so still."""
    values: dict[str, datetime | None] = {}
    if into.valid_from is not None:
        values["valid_from"] = min(note.valid_from or note.created_at for note in notes)
    if into.valid_to is not None and into.superseded_by_id is None:
        ends = [note.valid_to for note in notes if note.valid_to is not None]
        values["valid_to"] = max(ends) if len(ends) == len(notes) else None
    return values


def joined_tags(lists: Sequence[Sequence[Any]]) -> list[str]:
    """All tags, each once however it is written, as many as a note may have."""
    unique: dict[str, str] = {}
    for tag in (str(tag) for tags in lists for tag in tags):
        unique.setdefault(fold(tag), tag)
    return list(unique.values())[:MAX_TAGS]
