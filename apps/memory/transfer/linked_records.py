"""Records of what hangs on notes, and how they are taken in: the links between them, the short names that they have in conversations
(`n7`), and the times that they came up."""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Annotated
from uuid import UUID

from django.db.models import Q
from pydantic import Field

from apps.core.db.writing import insert_all
from apps.core.http.shapes import Lax, text
from apps.core.registries import owners
from apps.core.transfer import (
    GONE,
    KNOWN,
    OWN_ONLY,
    PAGE,
    Entry,
    RecordId,
    RecordInput,
    RecordTime,
    Row,
    Taking,
    Write,
    derived_id,
    ids_here,
    paged,
    row_of,
    shaped,
)
from apps.memory.models import Memory, MemoryEdge, MemoryUse, NoteHandle, Origin, UsedIn
from apps.memory.models.uses import MAX_QUESTION_CHARS, MAX_WHY_CHARS
from apps.memory.notes.joining import MAX_RELATION_CHARS
from apps.memory.notes.uses import KEPT

from .records import ForeignEdge

UNLINKED = "One of its notes is not here."
NOT_OURS = "It links a note that did not come from an import."


class EdgeRecord(RecordInput):
    """A link between two notes."""

    id: RecordId
    source: RecordId
    target: RecordId
    relation: Annotated[str, text(MAX_RELATION_CHARS)] = "related"
    weight: float = Field(1.0, ge=0, le=1)
    created_at: RecordTime | None = None


def edge_rows(user_id: UUID) -> Iterator[Row]:
    """The links between notes that are not deleted."""
    edges = MemoryEdge.objects.for_user(user_id)
    for edge in paged(edges.filter(source__deleted_at=None, target__deleted_at=None)):
        yield row_of("edge", EdgeRecord, edge)


def edges_plan(taking: Taking, entries: Sequence[Entry]) -> Write:
    """Plans links, whose notes stand before them."""
    given = shaped(taking, [entry for entry in entries if entry.kind == "edge"], EdgeRecord)
    given += shaped(
        taking, [_foreign_edge(taking, e) for e in entries if e.kind == "foreign_edge"], EdgeRecord
    )
    return _edges(taking, given)


def _foreign_edge(taking: Taking, entry: Entry) -> Entry:
    edge: ForeignEdge = entry.value
    source, target = (
        derived_id(taking.user_id, taking.format, "note", key) for key in (edge.source, edge.target)
    )
    key = derived_id(taking.user_id, taking.format, "edge", edge.source, edge.target, edge.relation)
    given = {
        "id": str(key),
        "source": str(source),
        "target": str(target),
        "relation": edge.relation,
        "weight": edge.weight,
    }
    return Entry(entry.kind, given, entry.place, entry.line)


def _edges(taking: Taking, given: Sequence[tuple[Entry, EdgeRecord]]) -> Write:
    notes = ids_here(taking, "note", {key for _, edge in given for key in (edge.source, edge.target)})
    ids = ids_here(taking, "edge", {edge.id for _, edge in given})
    foreign = set() if taking.trusted else _not_imported(taking.user_id, notes.there)
    sources = {notes[edge.source] for _, edge in given}
    rows = MemoryEdge.objects.owned_by(taking.user_id).filter(source_id__in=sources)
    linked = set(rows.values_list("source_id", "target_id", "relation"))
    new = []
    for entry, edge in given:
        source, target = notes[edge.source], notes[edge.target]
        if source == target:
            taking.report.refuse(entry, "A note cannot be linked to itself.")
        elif not (notes.known(edge.source) and notes.known(edge.target)):
            taking.report.skip(entry, UNLINKED)
        elif (source, target, edge.relation) in linked or ids.known(edge.id):
            taking.report.skip(entry, KNOWN)
        elif source in foreign or target in foreign:
            taking.report.skip(entry, NOT_OURS)
        else:
            linked.add((source, target, edge.relation))
            taking.report.take(entry.kind)
            new.append(
                MemoryEdge(
                    id=ids[edge.id],
                    user_id=taking.user_id,
                    source_id=source,
                    target_id=target,
                    **edge.columns(MemoryEdge) | {"created_at": edge.created_at or taking.now},
                )
            )
    return partial(insert_all, new)


def _not_imported(user_id: UUID, keys: Collection[UUID]) -> set[UUID]:
    """Those of the notes that did not come from an import: a file of others links nothing to them."""
    rows = Memory.objects.owned_by(user_id).filter(pk__in=keys).exclude(origin=Origin.IMPORT)
    return set(rows.values_list("pk", flat=True))


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
