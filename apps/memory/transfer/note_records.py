"""Records of notes and of what they were before, as an export has them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import Annotated, Literal
from uuid import UUID

from django.db.models import QuerySet
from pydantic import Field

from apps.core.http.shapes import Lax, Time, text
from apps.core.transfer import (
    RecordId,
    RecordInput,
    RecordTime,
    Row,
    pages,
    row_of,
)
from apps.memory.models import (
    Action,
    Kind,
    Memory,
    MemoryRevision,
    OccasionsBy,
    OccasionsWait,
    Origin,
    Proposal,
    ReviewReason,
    Status,
    Tier,
    Trust,
)
from apps.memory.notes.fields import CATEGORY, MAX_CONTENT_CHARS, OCCASIONS, TAGS
from apps.memory.notes.revisions import MAX_REASON_CHARS
from apps.memory.notes.selectors import current_cycle

_Tier = Annotated[Tier, Lax]
_Kind = Annotated[Kind, Lax]
_Trust = Annotated[Trust, Lax]


class DecayRecord(RecordInput):
    """The chat turns that a user has had: the clock of priorities."""

    cycle: int = Field(ge=0, le=2**53)


class NoteRecord(RecordInput):
    """A note. `turns` counts the chat turns since its priority was written; `occasions_open`: Izzy has yet to make them."""

    id: RecordId
    content: Annotated[str, text(MAX_CONTENT_CHARS)]
    tier: _Tier = Tier.LONG_TERM
    kind: _Kind = Kind.GENERAL
    importance: int = Field(3, ge=1, le=5)
    priority: float | None = Field(None, ge=0, le=1)
    decay_rate: float | None = Field(None, ge=0, le=1)
    turns: int = Field(0, ge=0, le=2**53)
    tags: Annotated[list[str], TAGS] = Field(default_factory=list)
    category: Annotated[str, CATEGORY] = ""
    occasions: Annotated[list[str] | None, OCCASIONS] = None
    occasions_by: Annotated[OccasionsBy, Lax] = OccasionsBy.NONE
    occasions_open: bool = True
    status: Annotated[Status, Lax] = Status.ACTIVE
    valid_from: Time | None = None
    valid_to: Time | None = None
    superseded_by: RecordId | None = None
    review_reason: Annotated[ReviewReason, Lax] | Literal[""] = ""
    proposed_action: Annotated[Proposal, Lax] | Literal[""] = ""
    proposed_target: RecordId | None = None
    proposed_fields: list[Annotated[str, text(64)]] = Field(default_factory=list, max_length=20)
    origin: Annotated[Origin, Lax] = Origin.IMPORT
    trust: _Trust = Trust.UNTRUSTED
    source_conversation: RecordId | None = None
    source_message: RecordId | None = None
    created_at: RecordTime | None = None
    updated_at: RecordTime | None = None
    last_accessed: RecordTime | None = None
    access_count: int = Field(0, ge=0, le=2**31 - 1)
    use_count: int = Field(0, ge=0, le=2**31 - 1)


class StateRecord(RecordInput):
    """A former state of a note, as `note_state` makes it."""

    tier: _Tier
    kind: _Kind
    importance: int = Field(ge=1, le=5)
    tags: Annotated[list[str], TAGS]
    category: Annotated[str, CATEGORY]
    status: Annotated[Status, Lax]
    priority: float = Field(ge=0, le=1)
    decay_rate: float = Field(ge=0, le=1)
    trust: _Trust
    occasions: Annotated[list[str] | None, OCCASIONS]
    occasions_by: Annotated[OccasionsBy, Lax]
    valid_from: Time | None
    valid_to: Time | None
    superseded_by: RecordId | None
    review_reason: Annotated[ReviewReason, Lax] | Literal[""] = ""
    change: "ChangeRecord | None" = None


class ChangeRecord(RecordInput):
    """The other notes of a change."""

    by: RecordId | None = None
    made: bool | None = None
    merged: list[RecordId] | None = None
    instead_of: RecordId | None = None
    to: int | None = None


class RevisionRecord(RecordInput):
    """A state that a note had; it stands behind its note."""

    note: RecordId
    version: int = Field(ge=1, le=2**31 - 1)
    content: Annotated[str, text(MAX_CONTENT_CHARS, allow_empty=True)]
    state: StateRecord
    action: Annotated[Action, Lax]
    actor: Annotated[Origin, Lax]
    reason: Annotated[str, text(MAX_REASON_CHARS, allow_empty=True)] = ""
    created_at: RecordTime


def note_rows(user_id: UUID, chosen: QuerySet[Memory] | None = None) -> Iterator[Row]:
    """The decay clock, and each note, or each `chosen` one, with its revisions behind it; deleted notes are left out."""
    cycle = current_cycle(user_id)
    yield {"type": "decay", "cycle": cycle}
    revisions = MemoryRevision.objects.for_user(user_id)
    for notes in pages(Memory.objects.for_user(user_id) if chosen is None else chosen):
        kept = _kept(
            user_id, [key for note in notes for key in (note.superseded_by_id, note.proposed_target_id)]
        )
        former: dict[UUID, list[MemoryRevision]] = defaultdict(list)
        for row in revisions.filter(memory_id__in=[note.pk for note in notes]).order_by("version"):
            former[row.memory_id].append(row)
        for note in notes:
            yield note_row(note, cycle, kept)
            for row in former[note.pk]:
                yield row_of("revision", RevisionRecord, row, note=row.memory_id)


def _kept(user_id: UUID, keys: Iterable[UUID | None]) -> set[UUID]:
    """Those of the notes that are not deleted."""
    wanted = [key for key in keys if key]
    return set(
        Memory.objects.owned_by(user_id).filter(pk__in=wanted).values_list("pk", flat=True)
        if wanted
        else ()
    )


def note_row(note: Memory, cycle: int, kept: Collection[UUID]) -> Row:
    """The record of a note at the user's decay cycle; it names others only where they are `kept`."""
    wait, by = note.occasions_wait, note.occasions_by
    waits = wait == OccasionsWait.MODEL or (wait == OccasionsWait.CHECK and by != OccasionsBy.MODEL)
    target, instead = note.proposed_target_id, note.superseded_by_id
    return row_of(
        "note",
        NoteRecord,
        note,
        turns=max(0, cycle - note.priority_cycle),
        occasions_open=waits,
        superseded_by=instead if instead in kept else None,
        proposed_target=target if target in kept else None,
    )
