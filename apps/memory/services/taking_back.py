"""Undoing what was just done to one note or many, as one change: each step leads one thing back to what it was before."""

import re
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import Max

from apps.core.errors import Conflict, InvalidInput, NotFound
from apps.core.ids import parse_id
from apps.memory.models import Memory, MemoryEdge, MemoryRevision, Relation, Status

from .deletion import memory_delete
from .provenance import BY_USER, Change
from .undoing import memory_restore, memory_undo

MAX_STEPS = 500
NOTHING = "There is nothing that can be undone."
CHANGED_SINCE = "It was changed since, so this can no longer be undone at once. The history of each memory has the way back."
_STEP = re.compile(
    r"(?P<kind>delete|undo|contradicts) (?P<one>\S{1,60}) (?P<two>[\w-]{1,60}) (?P<three>\d{1,8})"
)
"""`undo` and `delete`: a note, its newest version, the version to go back to. `contradicts`: two notes, whether they were
linked otherwise too."""


def versions_of(user_id: UUID, memory_ids: Collection[UUID]) -> dict[UUID, tuple[int, str]]:
    """By note the number of the newest version that is kept of it (0: none), and its status."""
    rows = MemoryRevision.objects.owned_by(user_id).filter(memory_id__in=memory_ids).order_by()
    newest = dict(rows.values_list("memory_id").annotate(newest=Max("version")))
    notes = Memory.objects.with_deleted(user_id).filter(pk__in=memory_ids).values_list("pk", "status")
    return {key: (newest.get(key, 0), status) for key, status in notes}


def steps_back(user_id: UUID, before: Mapping[UUID, tuple[int, str]]) -> list[str]:
    """The steps that undo what has happened to these notes since `versions_of` told what they were; none for one that is as
    it was. Those that waited for review come last: one that replaced another is deleted when that is brought back."""
    now = versions_of(user_id, before)
    changed = [key for key in before if key in now and now[key][0] != before[key][0]]
    steps = []
    for key in sorted(changed, key=lambda key: before[key][1] == Status.PENDING):
        kind = "delete" if before[key][1] == Status.DELETED else "undo"
        steps.append(f"{kind} {key} {now[key][0]} {before[key][0] + 1}")
    return steps


@transaction.atomic
def steps_take(*, user_id: UUID, steps: Sequence[str], change: Change = BY_USER) -> int:
    """Takes these steps back, all or none; how many notes are as they were.

    Raises InvalidInput for what is no step, NotFound for a note that is not there (any more) or somebody else's, Conflict
    (`changed_since`) where a note was changed after what is to be undone.
    """
    if not 0 < len(steps) <= MAX_STEPS:
        raise InvalidInput(NOTHING, code="no_steps", field="step")
    taken = [_STEP.fullmatch(step) for step in steps]
    found = [(step["kind"], parse_id(step["one"]), step["two"], step["three"]) for step in taken if step]
    if len(found) < len(steps):
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
            memory_delete(user_id=user_id, memory_id=key, change=change)
        else:
            memory_restore(user_id=user_id, memory_id=key, change=change)
            memory_undo(user_id=user_id, memory_id=key, version=int(third), change=change)
    return len(expected)


def _oppose(user_id: UUID, source_id: UUID, target_id: UUID, *, linked: bool) -> None:
    """Two notes contradict each other again; a link between them stays where there was one before (`linked`)."""
    if Memory.objects.owned_by(user_id).filter(pk__in=[source_id, target_id]).count() != 2:
        raise NotFound("One of these memories is no longer there.")
    edges = MemoryEdge.objects.for_user(user_id).filter(source_id=source_id, target_id=target_id)
    if not linked:
        edges.filter(relation=Relation.RELATED).delete()
    MemoryEdge.objects.unscoped().get_or_create(
        source_id=source_id,
        target_id=target_id,
        relation=Relation.CONTRADICTS,
        defaults={"user_id": user_id},
    )
