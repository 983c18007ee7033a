"""Records of the short names that notes have in conversations (`n7`), and how they are taken in."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated
from uuid import UUID

from django.db.models import Q
from pydantic import Field

from apps.core.db.writing import insert_all
from apps.core.registries import owners
from apps.core.transfer import (
    GONE,
    KNOWN,
    OWN_ONLY,
    PAGE,
    Entry,
    RecordId,
    RecordInput,
    Row,
    Taking,
    Write,
    ids_here,
    row_of,
    shaped,
)
from apps.memory.models import Memory, NoteHandle


class HandleRecord(RecordInput):
    """The number of a note in a conversation; without a note it was given once, and stays taken."""

    conversation: RecordId
    number: Annotated[int, Field(ge=1, le=2**31 - 1)]
    note: RecordId | None = None


def handle_rows(user_id: UUID) -> Iterator[Row]:
    """Those of conversations that are there, by conversation and number."""
    after: tuple[UUID, int] | None = None
    rows = NoteHandle.objects.for_user(user_id).order_by("conversation_id", "number")
    there: dict[UUID, bool] = {}
    deleted = set(Memory.objects.all_deleted().filter(user_id=user_id).values_list("pk", flat=True))
    while True:
        if after is None:
            page = list(rows[:PAGE])
        else:
            same = Q(conversation_id=after[0], number__gt=after[1])
            page = list(rows.filter(same | Q(conversation_id__gt=after[0]))[:PAGE])
        if not page:
            return
        for handle in page:
            note, talk = handle.memory_id, handle.conversation_id
            if talk not in there:
                there[talk] = owners["conversation"](user_id, talk)
            if not there[talk]:
                continue
            yield row_of("handle", HandleRecord, handle, note=None if note in deleted else note)
        after = (page[-1].conversation_id, page[-1].number)


def handles_plan(taking: Taking, entries: Sequence[Entry]) -> Write:
    """Plans the handles of conversations of the user's own export; a number or note that has one there keeps it."""
    given = shaped(taking, entries, HandleRecord)
    talks = ids_here(taking, "conversation", {record.conversation for _, record in given})
    notes = ids_here(taking, "note", {record.note for _, record in given})
    here = {talks[record.conversation] for _, record in given}
    rows = NoteHandle.objects.for_user(taking.user_id).filter(conversation_id__in=here)
    taken = set(rows.values_list("conversation_id", "number"))
    named: set[tuple[UUID, UUID | None]] = set(rows.values_list("conversation_id", "memory_id"))
    new = []
    for entry, record in given:
        talk = talks[record.conversation]
        note = notes.of_known(record.note)
        if not taking.own:
            taking.report.skip(entry, OWN_ONLY)
        elif not talks.known(record.conversation):
            taking.report.skip(entry, GONE)
        elif (talk, record.number) in taken or (note and (talk, note) in named):
            taking.report.skip(entry, KNOWN)
        else:
            taken.add((talk, record.number))
            named.add((talk, note))
            taking.report.take("handle")
            new.append(
                NoteHandle(
                    user_id=taking.user_id, conversation_id=talk, number=record.number, memory_id=note
                )
            )
    return partial(insert_all, new)
