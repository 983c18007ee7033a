"""The user's word on what waits: accept, edit and accept, merge, reject. No tool of the assistant leads here."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, QuerySet
from django.utils import timezone

from apps.core.db.prepared import prepared
from apps.core.errors import Conflict, InvalidInput, IzzyError
from apps.core.text import plain_breaks
from apps.memory.models import Action, Memory, MemoryEdge, Proposal, ReviewReason, Status, Trust
from apps.memory.notes.selectors import memory_get, open_contradictions, with_present_priority
from apps.memory.trust import least_trust

from .changes import change_apply, memory_delete
from .fields import clean_content
from .joining import joined_tags, newest_of, supersede_with, validity_joined
from .occasions import occasions_typed
from .revisions import BY_USER, Change

MAX_AT_ONCE = 200

_FIELDS = ("content", "tier", "kind", "importance", "tags", "category", "valid_from", "valid_to")


def review_queue(user_id: UUID) -> QuerySet[Memory]:
    """The notes that wait for the user's word, newest first, each with `present`."""
    waiting = Memory.objects.for_user(user_id).filter(status=Status.PENDING)
    return with_present_priority(user_id, waiting).order_by("-pk")


def waiting_count(user_id: UUID) -> int:
    """How many things wait for the user's word: notes, and contradictions to be resolved."""
    return sum(_pending_counted(user_id)) + sum(_contradictions_counted(user_id))


@prepared
def _pending_counted(user_id: UUID) -> QuerySet[Memory, int]:
    rows = Memory.objects.for_user(user_id).filter(status=Status.PENDING)
    return rows.order_by().values_list("user_id").annotate(n=Count("pk")).values_list("n", flat=True)


@prepared
def _contradictions_counted(user_id: UUID) -> QuerySet[MemoryEdge, int]:
    rows = open_contradictions(user_id).order_by().values_list("user_id")
    return rows.annotate(n=Count("pk")).values_list("n", flat=True)


def pending_get(user_id: UUID, memory_id: UUID) -> Memory:
    """A note that waits, locked. Raises NotFound, also for somebody else's, and Conflict `not_waiting` for any other."""
    note = memory_get(user_id, memory_id, lock=True)
    if note.status != Status.PENDING:
        raise Conflict("This note does not wait for review (any more).", code="not_waiting")
    return note


@dataclass(frozen=True, slots=True)
class Decided:
    """Result of a decision on several notes: the count, and by id why others were left alone."""

    count: int = 0
    failed: dict[UUID, IzzyError] = field(default_factory=dict)


@transaction.atomic
def review_accept(
    *, user_id: UUID, memory_id: UUID, content: object = None, change: Change = BY_USER
) -> Memory:
    """Do what a pending note proposes, with another text where one is given; returns the note that holds it now.

    A new note becomes active; a replacement becomes active and supersedes; a change or merge goes into the note it
    concerns, and the proposal is deleted (restorable). Where that note is gone or archived by now a new one is made of it.
    Of that note only what was proposed changes, and its text where another is given. Accepting does not raise the trust:
    what came from an untrusted source stays marked. A text that the user has rewritten is the user's.

    Raises NotFound for an unknown note and Conflict `not_waiting` for one that does not wait.
    """
    note = pending_get(user_id, memory_id)
    if content is not None:
        text = clean_content(content)
        if plain_breaks(text) != plain_breaks(note.content):
            change_apply(note, {"content": text, "trust": Trust.USER}, Action.UPDATED, change)
            # For now, not for good: put back, it proposes what it did.
            note.proposed_fields = [*note.proposed_fields, "content"]
    target = _target(note)
    if target is None or note.proposed_action == Proposal.SUPERSEDE:
        values: dict[str, Any] = {"status": Status.ACTIVE}
        at = note.valid_from or note.created_at
        if target is not None:
            values |= occasions_typed(target, note)
            if note.created_at < target.created_at:  # which was said later, and held until now
                at = max(at, timezone.now())
                values["valid_from"] = note.valid_from or at
        change_apply(note, values, Action.ACCEPTED, change)
        if target is not None:
            supersede_with(target, note, at=at, change=change, made=True)
        return note
    values = {name: getattr(note, name) for name in _FIELDS if name in note.proposed_fields}
    if note.proposed_action == Proposal.MERGE:
        return _take_in(target, note, values | _joined(target, note), Action.MERGED, change)
    return _take_in(target, note, values, Action.UPDATED, change)


@transaction.atomic
def note_approve(*, user_id: UUID, memory_id: UUID, change: Change = BY_USER) -> Memory:
    """Say yes to an untrusted note that never waited: it counts as reviewed, and its trust stays. One that is waiting is accepted.

    Raises NotFound for an unknown note and Conflict `nothing_to_approve` for one that carries no mark.
    """
    note = memory_get(user_id, memory_id, lock=True)
    if note.status == Status.PENDING:
        return review_accept(user_id=user_id, memory_id=memory_id, change=change)
    if not note.unapproved:
        raise Conflict("There is nothing to approve in this note.", code="nothing_to_approve")
    change_apply(note, {"review_reason": ReviewReason.UNTRUSTED}, Action.ACCEPTED, change)
    return note


@transaction.atomic
def review_merge(
    *, user_id: UUID, memory_id: UUID, into_id: UUID, content: object = None, change: Change = BY_USER
) -> Memory:
    """Let an active note take in a pending one: with the text given, else both, one below the other.

    The note is trusted as the least of both from then on. The pending one is deleted (restorable).
    """
    note = pending_get(user_id, memory_id)
    if into_id == memory_id:
        raise InvalidInput("A note cannot be merged into itself.", field="into")
    into = memory_get(user_id, into_id, lock=True)
    if into.status != Status.ACTIVE:
        raise Conflict("Only into an active note can be merged.", code="not_active", field="into")
    text = clean_content(f"{into.content}\n{note.content}" if content is None else content)
    values = {"content": text, **_joined(into, note), **validity_joined(into, [into, note])}
    return _take_in(into, note, values, Action.MERGED, change)


@transaction.atomic
def review_reject(*, user_id: UUID, memory_id: UUID, change: Change = BY_USER) -> Memory:
    """Turn a pending note down: it is deleted, and restorable for 30 days, to wait again."""
    note = pending_get(user_id, memory_id)
    return memory_delete(
        user_id=user_id, memory_id=note.pk, change=_because(change, "rejected in review")
    )


def review_decide(
    *, user_id: UUID, memory_ids: Sequence[UUID], accept: bool, change: Change = BY_USER
) -> Decided:
    """Accept or reject several notes, each for itself: one that cannot be decided on does not hold up the others."""
    wanted = list(dict.fromkeys(memory_ids))
    if not wanted or len(wanted) > MAX_AT_ONCE:
        raise InvalidInput(f"Name 1 to {MAX_AT_ONCE} notes.", field="notes", limit=MAX_AT_ONCE)
    decide = review_accept if accept else review_reject
    failed: dict[UUID, IzzyError] = {}
    for memory_id in reversed(
        wanted
    ):  # the queue has the newest first; of two on one note the newer counts
        try:
            decide(user_id=user_id, memory_id=memory_id, change=change)
        except IzzyError as error:
            failed[memory_id] = error
    return Decided(len(wanted) - len(failed), failed)


def _target(note: Memory) -> Memory | None:
    """The note that a proposal concerns, or what replaced it since; None where there is none (any more), or it was put away."""
    if note.proposed_action == Proposal.ADD or note.proposed_target_id is None:
        return None
    rows = Memory.objects.for_user(note.user_id).select_for_update()
    target = rows.filter(pk=note.proposed_target_id).first()
    try:
        if target is None or is_put_away(target, note):
            return None
        newest = newest_of(target)
    except Conflict:
        return None
    return None if newest.status == Status.PENDING or is_put_away(newest, note) else newest


def is_put_away(target: Memory, note: Memory) -> bool:
    """Whether a note was archived, so that nobody would find in it the text that a proposal brings."""
    return target.status == Status.ARCHIVED and target.content != text_proposed(note, target)


def text_proposed(note: Memory, target: Memory) -> str:
    """The text that a note has once it takes in what a proposal brings: its own where that is about its labels alone."""
    return note.content if "content" in note.proposed_fields else target.content


def _joined(into: Memory, note: Memory) -> dict[str, Any]:
    """The labels of a note that takes in what another says."""
    return {
        "importance": max(into.importance, note.importance),
        "tags": joined_tags([into.tags, note.tags]),
    }


def _take_in(
    target: Memory, note: Memory, values: dict[str, Any], action: Action, change: Change
) -> Memory:
    """Change `target` as a proposal wants it, and put the proposal away."""
    if values.get("content", target.content) != target.content:
        values["trust"] = least_trust(target.trust, note.trust)
    values |= occasions_typed(target, note)
    change = _because(change, "accepted in review")
    change_apply(target, values, action, change)
    memory_delete(user_id=note.user_id, memory_id=note.pk, change=change)
    return memory_get(note.user_id, target.pk)


def _because(change: Change, reason: str) -> Change:
    return change if change.reason else replace(change, reason=reason)
