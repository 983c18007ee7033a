"""The way back: to a former version of a note, with what that brings back or takes away in other notes, and of notes that
were deleted, archived or replaced; for one note or many at once."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone

from apps.core.errors import Conflict, InvalidInput, NotFound, TooLarge
from apps.core.ids import parse_id
from apps.memory.models import Action, Memory, MemoryEdge, MemoryRevision, Relation, Status, is_gone
from apps.memory.notes.selectors import current_cycle, memory_get

from .changes import (
    change_apply,
    differs,
    edge_remove,
    memory_archive,
    memory_delete,
    memory_update,
    planned_by,
    plans_follow,
    plans_give_back,
)
from .creation import notes_reindex
from .joining import edge_ensure, supersede_with
from .revisions import BY_USER, Change, revision_keep, state_values, time_in

MAX_AT_ONCE = 200
MAX_STEPS = 500
NOTHING = "There is nothing that can be undone."
CHANGED_SINCE = "It was changed since, so this can no longer be undone at once. The history of each memory has the way back."
_STEP = re.compile(
    r"(?P<kind>delete|undo|contradicts) (?P<one>\S{1,60}) (?P<two>[\w-]{1,60}) (?P<three>\d{1,8})"
)
"""`undo` and `delete`: a note, its newest version, the version to go back to. `contradicts`: two notes, whether they were
linked otherwise too."""


@transaction.atomic
def memory_undo(*, user_id: UUID, memory_id: UUID, version: int, change: Change = BY_USER) -> Memory:
    """Bring a note back to what it was in `version` (1 is the first); this is itself a change with a revision.

    With it goes what the changes after that version did to other notes: a note that has replaced this one since is deleted
    (restorable), notes that were merged into it come back, the links that said so are removed. Going forward again, to
    the version that a merge had made, takes in the same notes once more, as far as they say what they said then.

    Raises NotFound where the note never had that version, Conflict where the note that replaced it has itself been
    replaced since.
    """
    note = memory_get(user_id, memory_id, lock=True)
    revisions = list(_revisions(note).reverse())
    wanted = next((row for row in revisions if row.version == version), None)
    if wanted is None:
        raise NotFound(f"This note has no earlier version {version}.", code="unknown_version")
    merged = _merged_by_version(revisions)
    now, then = merged[revisions[-1].version + 1], merged[version]
    newer_id = note.superseded_by_id
    values = _values_of(note, wanted)
    parted = _merged_still(note, [key for key in now if key not in then])
    rows = (
        Memory.objects.owned_by(user_id).select_for_update().exclude(pk=memory_id).order_by("created_at")
    )
    once = rows.filter(pk__in=[key for key in then if key not in now], status=Status.ACTIVE)
    joined = [other for other in once if _reads_as_merged(other, note)]
    if parted or joined or differs(note, values):
        change_apply(note, values, Action.UNDONE, change, more={"to": version})
    for other_id, before in parted:
        _part(note, other_id, before, change)
    if newer_id is not None and newer_id != note.superseded_by_id:
        _withdraw(note, newer_id, change)
    for other in joined:
        supersede_with(other, note, at=note.updated_at, change=change, action=Action.MERGED)
    return note


def _revisions(note: Memory, **kept: object) -> QuerySet[MemoryRevision]:
    """The kept versions of a note, the newest first."""
    return (
        MemoryRevision.objects.for_user(note.user_id)
        .filter(memory_id=note.pk, **kept)
        .order_by("-version")
    )


def _merged_by_version(revisions: Sequence[MemoryRevision]) -> dict[int, tuple[UUID, ...]]:
    """By version, up to the present one, the notes that had been merged into it, as far back as versions are kept."""
    taken: dict[int, tuple[UUID, ...]] = {revisions[0].version: ()}
    for row in revisions:
        change = row.state.get("change", {})
        if "to" in change:
            taken[row.version + 1] = taken.get(change["to"], ())
        else:
            taken[row.version + 1] = (*taken[row.version], *map(UUID, change.get("merged", ())))
    return taken


def _values_of(note: Memory, wanted: MemoryRevision) -> dict[str, Any]:
    """Values that bring a note back to a version; where nothing replaces it then it ends as it did before that was planned."""
    values = state_values(wanted, replaced_by=_replaced_by(note, wanted))
    replaced = wanted.state["superseded_by"]
    if replaced and values["superseded_by_id"] is None:
        planned = planned_by(note, UUID(replaced))
        values["valid_to"] = time_in(planned, "valid_to") if planned else None
    return values


def _replaced_by(note: Memory, wanted: MemoryRevision) -> UUID | None:
    """The note that replaced this one in a version, or was to from a time ahead, where going back there leaves it at that.

    From being replaced to a version of before it began, the way leads back to a note that holds.
    """
    if not (key := wanted.state["superseded_by"]):
        return None
    newer, ended = UUID(key), wanted.state["status"] == Status.SUPERSEDED
    if newer == note.superseded_by_id:
        return newer if ended or note.status != Status.SUPERSEDED else None
    notes = Memory.objects.for_user(note.user_id)
    ahead = notes.filter(pk=newer, status=Status.ACTIVE, valid_from__gt=timezone.now())
    return newer if not ended and ahead.exists() else None


def _reads_as_merged(other: Memory, into: Memory) -> bool:
    """Whether a note says what it said when it was last merged into another."""
    newest = _merging(other, into)
    return newest is not None and newest.content == other.content


def _withdraw(old: Memory, newer_id: UUID, change: Change) -> None:
    """Let the note that took the place of `old` give it back: gone, unless it was there before or stands for others."""
    notes = Memory.objects.for_user(old.user_id)
    newer = notes.select_for_update().filter(pk=newer_id).first()
    edge_remove(newer_id, old)
    replaced = _revisions(old, state__change__by__isnull=False).first()
    plans_give_back(old, change)
    if newer is None or replaced is None or not replaced.state["change"].get("made"):
        return
    if newer.status == Status.SUPERSEDED:
        message = (
            "The note that replaced this one has itself been replaced since. Restore that one first."
        )
        raise Conflict(message, code="replaced")
    own = [old.pk, *filter(None, [replaced.state["change"].get("instead_of")])]
    if not notes.filter(superseded_by=newer).exclude(pk__in=own).exists():
        memory_delete(user_id=old.user_id, memory_id=newer_id, change=change)


def _merged_still(into: Memory, other_ids: Sequence[UUID]) -> list[tuple[UUID, MemoryRevision]]:
    """Those of the notes that were merged into another and still stand behind it, as they were before, the youngest first:
    it may be to replace another of them."""
    notes = Memory.objects.for_user(into.user_id).select_for_update()
    held = notes.filter(pk__in=other_ids, superseded_by=into).order_by("-pk")
    found = [(other, _merging(other, into)) for other in held]
    return [(other.pk, merged) for other, merged in found if merged is not None]


def _merging(other: Memory, into: Memory) -> MemoryRevision | None:
    return _revisions(other, action=Action.MERGED, state__change__by=str(into.pk)).first()


def _part(into: Memory, other_id: UUID, merged: MemoryRevision, change: Change) -> None:
    """Bring back a note that was merged into another, which replaces it as it was to before."""
    other = memory_get(into.user_id, other_id, lock=True)
    planned = planned_by(other, into.pk)
    if planned is not None and merged.state["superseded_by"] == str(into.pk):
        values = state_values(merged, replaced_by=into.pk)
        change_apply(other, values, Action.UNDONE, change, more=planned.state["change"])
        return
    edge_remove(into.pk, other)
    change_apply(other, _values_of(other, merged), Action.UNDONE, change)
    plans_give_back(other, change)


@transaction.atomic
def memory_restore(*, user_id: UUID, memory_id: UUID, change: Change = BY_USER) -> Memory:
    """Bring back a deleted, archived or superseded note as it was before; any other is returned unchanged.

    For a superseded note this undoes what superseded it, as `memory_undo` does. Raises NotFound for a note deleted
    more than 30 days ago, swept or not.
    """
    note = Memory.objects.with_deleted(user_id).select_for_update().filter(pk=memory_id).first()
    if note is None or is_gone(note.deleted_at):
        raise NotFound("There is no note with this id that could be restored.")
    if note.status == Status.SUPERSEDED:
        replaced = _revisions(note, action__in=[Action.SUPERSEDED, Action.MERGED]).first()
        if replaced is not None:
            return memory_undo(
                user_id=user_id, memory_id=memory_id, version=replaced.version, change=change
            )
    if note.status not in {Status.DELETED, Status.ARCHIVED}:
        return note
    action = Action.DELETED if note.status == Status.DELETED else Action.ARCHIVED
    ended = _revisions(note, action=action).first()
    former = str(ended.state["status"]) if ended else Status.ACTIVE
    revision_keep(note, action=Action.RESTORED, change=change, cycle=current_cycle(user_id))
    note.status = str(Status.ACTIVE) if former == Status.DELETED else former
    note.deleted_at, note.updated_at = None, timezone.now()
    note.save(update_fields=["status", "deleted_at", "updated_at"])
    notes_reindex(user_id, [note])
    plans_follow(note, change)
    return note


@transaction.atomic
def memory_tag(*, user_id: UUID, memory_id: UUID, tag: str) -> Memory:
    """Give a note a tag that it may have already; InvalidInput for what is no tag or one too many."""
    tags = [*memory_get(user_id, memory_id, lock=True).tags, tag]
    return memory_update(user_id=user_id, memory_id=memory_id, tags=tags)


@transaction.atomic
def bulk_change(
    work: Callable[..., Memory], *, user_id: UUID, memory_ids: Sequence[UUID], **options: Any
) -> int:
    """Change several notes by hand, each with `work`: all of them, or none where one is not there any more; how many.

    Raises NotFound, and nothing changed, for one that is unknown, deleted or somebody else's, TooLarge for too many.
    """
    if len(memory_ids) > MAX_AT_ONCE:
        raise TooLarge(f"At most {MAX_AT_ONCE} memories can be changed at once.")
    keys = sorted(
        set(memory_ids)
    )  # in the same order for everybody: two changes at once wait in no circle
    for key in keys:
        work(user_id=user_id, memory_id=key, **options)
    return len(keys)


def versions_of(user_id: UUID, memory_ids: Collection[UUID]) -> dict[UUID, tuple[int, str]]:
    """By note the number of the newest version that is kept of it (0: none), and its status."""
    rows = MemoryRevision.objects.owned_by(user_id).filter(memory_id__in=memory_ids).order_by()
    newest = dict(rows.values_list("memory_id").annotate(newest=Max("version")))
    notes = Memory.objects.with_deleted(user_id).filter(pk__in=memory_ids).values_list("pk", "status")
    return {key: (newest.get(key, 0), status) for key, status in notes}


def steps_back(user_id: UUID, before: Mapping[UUID, tuple[int, str]]) -> list[str]:
    """The steps that undo what has happened to these notes since `versions_of` was asked; none for one that is as
    it was. Those that waited for review come last: one that replaced another is deleted when that is brought back."""
    now = versions_of(user_id, before)
    changed = [key for key in before if key in now and now[key][0] != before[key][0]]
    steps = []
    for key in sorted(changed, key=lambda key: before[key][1] == Status.PENDING):
        kind = "delete" if before[key][1] == Status.DELETED else "undo"
        steps.append(f"{kind} {key} {now[key][0]} {before[key][0] + 1}")
    return steps


@transaction.atomic
def steps_take(*, user_id: UUID, steps: Sequence[str]) -> int:
    """Takes these steps back, all or none; how many notes are as they were. One that was replaced is so again.

    Raises InvalidInput for what is no step, NotFound for a note that is not there (any more) or somebody else's, Conflict
    (`changed_since`) where a note was changed after what is to be undone, or what had replaced it is gone.
    """
    taken = [_STEP.fullmatch(step) for step in steps[:MAX_STEPS]]
    found = [(step["kind"], parse_id(step["one"]), step["two"], step["three"]) for step in taken if step]
    if not found or len(found) < len(steps):
        raise InvalidInput(NOTHING, code="no_steps", field="step")
    expected = {key: int(version) for kind, key, version, _ in found if kind != "contradicts"}
    now = versions_of(user_id, expected)
    if len(now) < len(expected):
        raise NotFound("One of these memories is no longer there.")
    if any(now[key][0] != version for key, version in expected.items()):
        raise Conflict(CHANGED_SINCE, code="changed_since")
    for kind, key, second, third in found:
        if kind == "contradicts":
            _oppose(user_id, key, parse_id(second), linked=third == "1")
        elif kind == "delete":
            memory_delete(user_id=user_id, memory_id=key)
        else:
            if Memory.objects.with_deleted(user_id).filter(pk=key, status=Status.DELETED).exists():
                memory_restore(user_id=user_id, memory_id=key)
            rows = MemoryRevision.objects.for_user(user_id).filter(memory_id=key, version=int(third))
            wanted = rows.first()
            note = memory_undo(user_id=user_id, memory_id=key, version=int(third))
            if wanted is not None:
                _replace_again(note, wanted)
    return len(expected)


def _replace_again(note: Memory, wanted: MemoryRevision) -> None:
    """Have a note that went back to a version be replaced, or planned to be, as it was then: what replaced it comes back,
    where it was deleted when that version ended. Raises Conflict where it is gone, or stood in the place of a third."""
    newer_id = wanted.state["superseded_by"]
    if newer_id is None:
        if wanted.state["status"] == Status.SUPERSEDED:  # by what was gone for good then
            values = {"status": Status.SUPERSEDED, "valid_to": time_in(wanted, "valid_to")}
            old = memory_get(note.user_id, note.pk, lock=True)
            change_apply(old, values, Action.UNDONE, BY_USER)
        return
    if newer_id == str(note.superseded_by_id):
        return
    newer = Memory.objects.with_deleted(note.user_id).filter(pk=newer_id).first()
    kept = _revisions(note, state__change__by=newer_id, version__lt=wanted.version).first()
    made = kept is not None and bool(kept.state["change"].get("made"))
    comes_back = (
        newer is not None and newer.deleted_at is not None and newer.deleted_at >= wanted.created_at
    )
    if (
        newer is None
        or kept is None
        or "instead_of" in kept.state["change"]
        or (comes_back and not made)
    ):
        raise Conflict(CHANGED_SINCE, code="changed_since")
    if comes_back:
        newer = memory_restore(user_id=note.user_id, memory_id=newer.pk)
    supersede_with(
        memory_get(note.user_id, note.pk, lock=True),
        newer,
        at=time_in(wanted, "valid_to") or timezone.now(),
        change=BY_USER,
        action=Action(kept.action),
        made=made,
    )
    if wanted.state["status"] == Status.ARCHIVED:
        memory_archive(user_id=note.user_id, memory_id=note.pk)


def _oppose(user_id: UUID, source_id: UUID, target_id: UUID, *, linked: bool) -> None:
    """Two notes contradict each other again; a link between them stays where there was one before (`linked`)."""
    if Memory.objects.owned_by(user_id).filter(pk__in=[source_id, target_id]).count() != 2:
        raise NotFound("One of these memories is no longer there.")
    edges = MemoryEdge.objects.for_user(user_id).filter(source_id=source_id, target_id=target_id)
    if not linked:
        edges.filter(relation=Relation.RELATED).delete()
    edge_ensure(user_id, source_id, target_id, Relation.CONTRADICTS)
