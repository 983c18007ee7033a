"""Reads of the review queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import QuerySet

from apps.core.errors import Conflict
from apps.memory.history.diffs import Piece, text_diff
from apps.memory.models import Memory, Proposal, Status
from apps.memory.selectors import memories_by_id, memory_get, open_contradictions, with_present_priority
from apps.memory.similarity import NOTES, says_the_same
from apps.search.selectors import similar

_CANDIDATES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A note that waits, and what stands against it.

    `other` is the note it proposes to change or replace, else the active note that says the same, if any does;
    `similarity` (0 to 1) how alike they are, None where it was not measured. `diff` leads from the other's text to this one's.
    """

    note: Memory
    action: Proposal
    other: Memory | None = None
    similarity: float | None = None
    diff: tuple[Piece, ...] = ()

    @property
    def changes_other(self) -> bool:
        """Whether accepting it changes or replaces the other note."""
        return self.action != Proposal.ADD


def review_queue(user_id: UUID) -> QuerySet[Memory]:
    """The notes that wait for the user's word, newest first, each with `present`."""
    waiting = Memory.objects.for_user(user_id).filter(status=Status.PENDING)
    return with_present_priority(user_id, waiting).order_by("-pk")


def pending_count(user_id: UUID) -> int:
    """How many notes wait."""
    return Memory.objects.for_user(user_id).filter(status=Status.PENDING).count()


def waiting_count(user_id: UUID) -> int:
    """How many things wait for the user's word: notes, and contradictions to be settled."""
    return pending_count(user_id) + open_contradictions(user_id).count()


def pending_get(user_id: UUID, memory_id: UUID, *, lock: bool = False) -> Memory:
    """A note that waits. Raises NotFound, also for somebody else's, and Conflict `not_waiting` for any other."""
    note = memory_get(user_id, memory_id, lock=lock)
    if note.status != Status.PENDING:
        raise Conflict("This note does not wait for review (any more).", code="not_waiting")
    return note


def waiting_of(user_id: UUID, notes: Sequence[Memory]) -> list[Waiting]:
    """The notes with what stands against each, in their order."""
    targets = memories_by_id(user_id, [note.proposed_target_id for note in notes if note.proposed_target_id])
    near = {
        note.pk: similar(user_id, note.content, top_k=_CANDIDATES, scope=NOTES)
        for note in notes
        if note.proposed_target_id not in targets
    }
    known = memories_by_id(user_id, {key for found in near.values() for key, _ in found})
    return [
        _proposal(note, targets[note.proposed_target_id])
        if note.proposed_target_id in targets
        else _compared(note, near[note.pk], known)
        for note in notes
    ]


def _proposal(note: Memory, target: Memory) -> Waiting:
    diff = tuple(text_diff(target.content, note.content))
    return Waiting(note=note, action=Proposal(note.proposed_action), other=target, diff=diff)


def _compared(note: Memory, near: Sequence[tuple[UUID, float]], known: Mapping[UUID, Memory]) -> Waiting:
    """A new note beside the active one that says the same, by the rule that capture merges by."""
    for memory_id, similarity in near:
        other = known.get(memory_id)
        if other is None or other.status != Status.ACTIVE:
            continue
        if says_the_same(note.content, other.content, similarity):
            diff = tuple(text_diff(other.content, note.content))
            return Waiting(note=note, action=Proposal.ADD, other=other, similarity=similarity, diff=diff)
    return Waiting(note=note, action=Proposal.ADD)
