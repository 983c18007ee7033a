"""Records of the times that notes came up, and how they are taken in."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated
from uuid import UUID

from apps.core.db.writing import insert_all
from apps.core.http.shapes import Lax, text
from apps.core.registries import owners
from apps.core.transfer import (
    GONE,
    KNOWN,
    OWN_ONLY,
    Entry,
    RecordId,
    RecordInput,
    RecordTime,
    Row,
    Taking,
    Write,
    ids_here,
    paged,
    row_of,
    shaped,
)
from apps.memory.models import MemoryUse, UsedIn
from apps.memory.models.uses import MAX_QUESTION_CHARS, MAX_WHY_CHARS
from apps.memory.notes.uses import KEPT


class UseRecord(RecordInput):
    """A time that a note came up; without a conversation where that is gone, or was none."""

    id: RecordId
    note: RecordId
    used_in: Annotated[UsedIn, Lax]
    question: Annotated[str, text(MAX_QUESTION_CHARS, allow_empty=True)] = ""
    reason: Annotated[str, text(MAX_WHY_CHARS, allow_empty=True)] = ""
    conversation: RecordId | None = None
    message: RecordId | None = None
    created_at: RecordTime


def use_rows(user_id: UUID) -> Iterator[Row]:
    """Those of notes that are not deleted, the oldest first."""
    there: dict[UUID, bool] = {}
    for use in paged(MemoryUse.objects.for_user(user_id).filter(memory__deleted_at=None)):
        talk = use.conversation_id
        if talk and talk not in there:
            there[talk] = owners["conversation"](user_id, talk)
        known = talk is not None and there[talk]
        place = {} if known else {"conversation": None, "message": None}
        yield row_of("use", UseRecord, use, note=use.memory_id, **place)


def uses_plan(taking: Taking, entries: Sequence[Entry]) -> Write:
    """Plans the uses of the user's own export; a note takes in no more than it keeps."""
    given = shaped(taking, entries, UseRecord)
    ids = ids_here(taking, "use", {record.id for _, record in given})
    notes = ids_here(taking, "note", {record.note for _, record in given})
    talks = ids_here(taking, "conversation", {record.conversation for _, record in given})
    said = ids_here(taking, "message", {record.message for _, record in given})
    rows = MemoryUse.objects.owned_by(taking.user_id)
    held: dict[UUID, int] = {}
    for key in rows.filter(memory_id__in={notes[record.note] for _, record in given}).values_list(
        "memory_id", flat=True
    ):
        held[key] = held.get(key, 0) + 1
    new = []
    for entry, record in given:
        note = notes[record.note]
        if not taking.own:
            taking.report.skip(entry, OWN_ONLY)
        elif not notes.known(record.note):
            taking.report.skip(entry, GONE)
        elif ids.known(record.id) or held.get(note, 0) >= KEPT:
            taking.report.skip(entry, KNOWN)
        else:
            held[note] = held.get(note, 0) + 1
            taking.report.take("use")
            new.append(
                MemoryUse(
                    id=ids[record.id],
                    user_id=taking.user_id,
                    memory_id=note,
                    conversation_id=talks.of_known(record.conversation),
                    message_id=said.of_known(record.message),
                    **record.columns(MemoryUse),
                )
            )
    return partial(insert_all, new)
