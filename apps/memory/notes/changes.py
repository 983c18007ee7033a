"""Changes of one note: its fields, archiving, deleting, decay, and the record of what was read."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from apps.core.db.prepared import prepared_update
from apps.core.errors import Conflict
from apps.memory.models import (
    PRIORITY_FLOOR,
    STANDING,
    Action,
    DecayCycle,
    Memory,
    MemoryEdge,
    MemoryRevision,
    MemoryUse,
    NoteHandle,
    Origin,
    Proposal,
    Relation,
    Status,
    Tier,
    Trust,
)
from apps.memory.notes.selectors import current_cycle, memory_get, present_priority
from apps.memory.trust import least_trust
from apps.search.documents import Source
from apps.search.services import documents_remove

from .creation import INDEXED_FIELDS, notes_reindex, proposal_instead
from .fields import TIER_DEFAULTS, check_validity, clean_changes, folded
from .occasions import occasions_after, occasions_asked
from .revisions import BY_USER, Change, note_state, revision_keep, time_in


def change_apply(
    note: Memory,
    values: dict[str, Any],
    action: Action,
    change: Change,
    *,
    more: dict[str, Any] | None = None,
) -> None:
    """Give a locked note these (cleaned) values, keep the state they replace, and bring search in step.

    A new text or tier makes the note as fresh as a new one, unless `priority` is among the values, and a new text has its
    occasions made anew, unless the user typed them or they are among the values with whose they are. `more` tells
    of a change that concerns other notes too and is kept in the revision. Without it, and where nothing differs,
    nothing is written.
    """
    cycle = current_cycle(note.user_id)
    changed = _differing(note, values, cycle)
    if not changed and not more:
        return
    revision_keep(note, action=action, change=change, cycle=cycle, more=more)
    priority, decay_rate = TIER_DEFAULTS[Tier(changed.get("tier", note.tier))]
    if "tier" in changed:
        changed.setdefault("decay_rate", decay_rate)
    if "tier" in changed or "content" in changed:
        changed.setdefault("priority", priority)
    if "decay_rate" in changed:  # the turns that have passed went by the former one
        changed.setdefault("priority", note_state(note, cycle)["priority"])
    changed |= folded(changed) | occasions_after(note, values, changed)
    for name, value in changed.items():
        setattr(note, name, value)
    check_validity(note.valid_from, note.valid_to)
    if "priority" in changed:
        changed["priority_cycle"] = note.priority_cycle = cycle
    note.updated_at = timezone.now()
    note.save(update_fields=[*changed, "updated_at"])
    if INDEXED_FIELDS.intersection(changed):
        notes_reindex(note.user_id, [note])
    if not changed.keys().isdisjoint({"status", "valid_from"}):
        plans_follow(note, change)


CALLED_OFF = "what was to replace it was put away"
OVERTAKEN = "what was to replace it was itself replaced"
MOVED = "what replaces it holds from another time"


def plans_follow(new: Memory, change: Change) -> None:
    """Bring the notes that `new` is to replace from a time ahead in step with its status and that time: they hold on where it is
    put away, end as was planned where it is back, and when it begins where that is another time now."""
    if new.status == Status.ACTIVE:
        _plans_renew(new, change)
    elif new.status != Status.SUPERSEDED:
        plans_call_off(new.user_id, [new.pk], change)


def plans_call_off(
    user_id: UUID,
    memory_ids: Collection[UUID],
    change: Change,
    *,
    reason: str = CALLED_OFF,
    purged: bool = False,
) -> None:
    """Let the active notes that these were to replace hold as long as they did before that was planned; where these are
    deleted and do not come back (`purged`) also those that were put away themselves, and may."""
    planned = Q(status=Status.ACTIVE)
    if purged:
        away = Q(status__in=[Status.ARCHIVED, Status.DELETED])
        planned |= away & Q(valid_to__gt=F("superseded_by__deleted_at"))
    rows = Memory.objects.with_deleted(user_id).filter(planned, superseded_by__in=memory_ids)
    for old in rows.exclude(pk__in=memory_ids).select_for_update(of=("self",)):
        before = planned_by(old, old.superseded_by_id)
        values: dict[str, Any] = {
            "superseded_by_id": None,
            "valid_to": time_in(before, "valid_to") if before else None,
        }
        change_apply(old, values, Action.UPDATED, replace(change, reason=reason))


def _plans_renew(new: Memory, change: Change) -> None:
    start, now, notes = new.valid_from, timezone.now(), Memory.objects.for_user(new.user_id)
    linked = notes.filter(edges_in__source=new, edges_in__relation=Relation.SUPERSEDES)
    # Those it is to replace; those it has replaced before it begins, as is known now; and where it is back those that hold on.
    due = Q(superseded_by=new, status=Status.ACTIVE)
    if start is not None:
        due |= Q(superseded_by=None, status=Status.ACTIVE)
    if start is not None and start > now:
        due |= Q(superseded_by=new, status=Status.SUPERSEDED)
    for old in linked.filter(due).select_for_update(of=("self",)):
        planned = planned_by(old, new.pk)
        if planned is None or not planned.state["change"].get("made"):
            continue
        if old.superseded_by_id is not None:
            since, until = time_in(planned, "valid_from"), time_in(planned, "valid_to")
            values = ended_by(old, new, start, since=since, until=until)
            status = values.get("status", Status.ACTIVE)
            why = replace(change, reason=MOVED)
            change_apply(old, {**values, "status": status}, Action.UPDATED, why)
        elif start is not None and (old.valid_from or old.created_at) < start:
            values = ended_by(old, new, start, since=old.valid_from, until=old.valid_to)
            change_apply(old, values, Action.SUPERSEDED, change, more=planned.state["change"])


def ended_by(
    old: Memory, new: Memory, at: datetime | None, *, since: datetime | None, until: datetime | None
) -> dict[str, Any]:
    """The values of a note that gives way to `new` at a time (None: since that was said) and would hold `since` and `until` otherwise."""
    at, start = at or new.created_at, since or old.created_at
    end = at if at > start else new.created_at
    if end <= start:
        since = None  # it was to hold from a time ahead, and never will
    values: dict[str, Any] = {
        "superseded_by_id": new.pk,
        "valid_from": since,
        "valid_to": min(end, until) if until else end,
    }
    if end <= timezone.now():
        values["status"] = Status.SUPERSEDED
    return values


def plans_give_back(old: Memory, change: Change) -> None:
    """Have the notes that `old` was to replace, and that gave way to what replaced it, be replaced by it again."""
    rows = Memory.objects.for_user(old.user_id).select_for_update()
    linked = MemoryEdge.objects.for_user(old.user_id).filter(source=old, relation=Relation.SUPERSEDES)
    for note in rows.filter(
        pk__in=linked.values("target"), status__in=[Status.ACTIVE, Status.SUPERSEDED]
    ):
        handed = planned_by(note, note.superseded_by_id)
        if handed is None or handed.state["change"].get("instead_of") != str(old.pk):
            continue
        times: dict[str, Any] = {name: time_in(handed, name) for name in ("valid_from", "valid_to")}
        values = {**times, "status": Status.ACTIVE, "superseded_by_id": None}
        edge_remove(note.superseded_by_id, note)
        change_apply(note, values, Action.UNDONE, change)
    plans_follow(old, change)


def edge_remove(newer_id: UUID | None, old: Memory) -> None:
    """Remove the link that says that one note has replaced another, or is to."""
    edges = MemoryEdge.objects.for_user(old.user_id).filter(source_id=newer_id, target_id=old.pk)
    edges.filter(relation=Relation.SUPERSEDES).delete()


def planned_by(old: Memory, newer_id: UUID | None) -> MemoryRevision | None:
    """The version that ended when it was said last that another note takes the place of this one, not that it takes it in."""
    kept = MemoryRevision.objects.for_user(old.user_id).filter(
        memory_id=old.pk, action=Action.SUPERSEDED
    )
    return kept.filter(state__change__by=str(newer_id)).order_by("-version").first()


def differs(note: Memory, values: dict[str, Any]) -> bool:
    """Whether `change_apply` with these values would change a field."""
    return bool(_differing(note, values, current_cycle(note.user_id)))


def _differing(note: Memory, values: dict[str, Any], cycle: int) -> dict[str, Any]:
    """The values that the note does not have; the priority is compared with what decay has made of it."""
    present = vars(note) | {"priority": note_state(note, cycle)["priority"]}
    return {name: value for name, value in values.items() if present[name] != value}


WAITS = "This note waits for the user's review; only the user can change it."
REPLACED = "This note was replaced by another. Restore it to have it back in the place of that one."


@transaction.atomic
def memory_update(
    *, user_id: UUID, memory_id: UUID, change: Change = BY_USER, **changes: object
) -> Memory:
    """Change the given fields of a note; its id stays and its former state is kept as a revision.

    The old text is out of search when this returns. A new text or tier makes the note as fresh as a new
    one, unless `priority` is given. Where nothing differs nothing is written.

    A text that the user writes by hand is the user's from then on; any other writer's lowers the trust to the least
    of both. A change that has to be reviewed (see `status_for`) leaves the note as it is: what is returned
    then is another, pending note that proposes it. A pending note is changed by the user alone (Conflict), and one that
    was replaced becomes active, and holds on, by `memory_restore`, which takes away what replaced it (Conflict).
    """
    note = memory_get(user_id, memory_id, lock=True)
    values = occasions_asked(note, clean_changes(changes), change)
    if field := _brings_back(note, values):
        raise Conflict(REPLACED, code="replaced", field=field)
    if not change.by_hand:
        if note.status == Status.PENDING:
            raise Conflict(WAITS, code="waits_for_review")
        waiting = proposal_instead(note, Proposal.UPDATE, values, change)
        if waiting is not None:
            return waiting
    if note.status == Status.PENDING and note.proposed_target_id is not None:
        given = [name for name, value in values.items() if value != getattr(note, name)]
        values["proposed_fields"] = sorted({*note.proposed_fields, *given})
    if values.get("content", note.content) != note.content:
        values["trust"] = Trust.USER if change.by_hand else least_trust(note.trust, change.trust)
    archives = values.get("status") == Status.ARCHIVED != note.status
    change_apply(note, values, Action.ARCHIVED if archives else Action.UPDATED, change)
    return note


def is_replaced(note: Memory) -> bool:
    """Whether another note has taken the place of this one, which may be archived since."""
    if note.status != Status.ARCHIVED or note.superseded_by_id is None:
        return note.status == Status.SUPERSEDED
    return note.valid_to is not None and note.valid_to <= timezone.now()


def _brings_back(note: Memory, values: Mapping[str, Any]) -> str:
    """The value among these by which the note would hold beside what replaces it, now or from a time ahead; "" for none."""
    replaced = is_replaced(note)
    if replaced and values.get("status") in {Status.ACTIVE, Status.PENDING}:
        return "status"
    latest = timezone.now() if replaced else note.valid_to
    to_be_replaced = note.status == Status.ACTIVE and note.superseded_by_id is not None
    if not (replaced or to_be_replaced) or latest is None or "valid_to" not in values:
        return ""
    end = values["valid_to"]
    return "valid_to" if end is None or end > latest else ""


@transaction.atomic
def memory_archive(*, user_id: UUID, memory_id: UUID, change: Change = BY_USER) -> Memory:
    """Put a note away: out of search and injection, still browsable; `memory_restore` brings it back."""
    note = memory_get(user_id, memory_id, lock=True)
    change_apply(note, {"status": Status.ARCHIVED}, Action.ARCHIVED, change)
    return note


@transaction.atomic
def memory_delete(*, user_id: UUID, memory_id: UUID, change: Change = BY_USER) -> Memory:
    """Take a note out of rows, vectors and full text at once; `memory_restore` undoes it for 30 days."""
    note = memory_get(user_id, memory_id, lock=True)
    revision_keep(note, action=Action.DELETED, change=change, cycle=current_cycle(user_id))
    note.status = Status.DELETED
    note.deleted_at = note.updated_at = timezone.now()
    note.save(update_fields=["status", "deleted_at", "updated_at"])
    notes_reindex(user_id, [note])
    plans_follow(note, change)
    return note


@transaction.atomic
def memories_erase(*, user_id: UUID, memory_ids: Collection[UUID]) -> None:
    """Remove notes for good, with their passages, revisions and edges. There is no way back."""
    plans_call_off(user_id, memory_ids, BY_USER, purged=True)
    documents_remove(user_id=user_id, source=Source.MEMORY, source_ids=memory_ids)
    Memory.objects.with_deleted(user_id).filter(pk__in=memory_ids).delete()


@transaction.atomic
def user_forget(user_id: UUID) -> int:
    """Erase all notes of a user, before the account goes; returns how many there were."""
    MemoryEdge.objects.for_user(user_id).delete()
    MemoryRevision.objects.for_user(user_id).delete()
    NoteHandle.objects.for_user(user_id).delete()
    MemoryUse.objects.for_user(user_id).delete()
    DecayCycle.objects.filter(user_id=user_id).delete()
    removed, _ = Memory.objects.with_deleted(user_id).delete()
    return removed


ARCHIVED_AT_ONCE = 100  # in one transaction: other writers need not wait for all
MAX_IMPORTANCE_ARCHIVED = 3


@transaction.atomic
def cycle_advance(*, user_id: UUID) -> None:
    """One more chat turn: moves the user's decay cycle on, whatever the number of notes."""
    if not _cycle_move(user_id):
        DecayCycle.objects.get_or_create(user_id=user_id)  # another process may have been quicker
        _cycle_move(user_id)


@prepared_update
def _cycle_move(user_id: UUID) -> tuple[QuerySet[DecayCycle], dict[str, Any]]:
    return DecayCycle.objects.filter(user_id=user_id), {"cycle": F("cycle") + 1}


def access_record(*, user_id: UUID, memory_ids: Collection[UUID]) -> None:
    """Note that these notes were returned by a tool or surfaced in a turn (a page that lists them does not count)."""
    if memory_ids:
        Memory.objects.owned_by(user_id).filter(pk__in=memory_ids).update(
            access_count=F("access_count") + 1, last_accessed=timezone.now()
        )


def decay_apply(*, user_id: UUID, archive_after: timedelta) -> tuple[int, int]:
    """Write the present priorities of a user's notes and archive those that faded and were neither read nor changed for
    `archive_after`: short-term ones of importance 3 and less, none that stands beside every conversation.

    Returns (notes written, notes archived). What is searchable or shown does not change by the writing.
    """
    with transaction.atomic():
        cycle = current_cycle(user_id)
        behind = Memory.objects.for_user(user_id).filter(priority_cycle__lt=cycle)
        written = behind.update(priority=present_priority(cycle), priority_cycle=cycle)
    archived = 0
    while batch := _archive_faded(user_id, archive_after):
        archived += batch
    return written, archived


@transaction.atomic
def _archive_faded(user_id: UUID, archive_after: timedelta) -> int:
    """Archives the next ARCHIVED_AT_ONCE, locked, so that one that is read or deleted meanwhile is left alone."""
    before = timezone.now() - archive_after
    unread = Q(last_accessed__lt=before) | Q(last_accessed=None)
    notes = Memory.objects.for_user(user_id).annotate(
        priority_now=present_priority(current_cycle(user_id))
    )
    due = notes.exclude(category=STANDING).filter(
        unread,
        updated_at__lt=before,  # one that was brought back lately has its time before it again
        priority_now__lt=PRIORITY_FLOOR,
        status=Status.ACTIVE,
        tier=Tier.SHORT_TERM,
        importance__lte=MAX_IMPORTANCE_ARCHIVED,
    )
    ids = list(due.select_for_update().values_list("pk", flat=True)[:ARCHIVED_AT_ONCE])
    change = Change(actor=Origin.ASSISTANT, trust=Trust.ASSISTANT, reason="faded and unread")
    for memory_id in ids:
        memory_archive(user_id=user_id, memory_id=memory_id, change=change)
    return len(ids)
