"""Records of links between notes, and how they are taken in."""

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Annotated
from uuid import UUID

from pydantic import Field

from apps.core.db.writing import insert_all
from apps.core.http.shapes import text
from apps.core.transfer import (
    KNOWN,
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
from apps.memory.models import (
    Memory,
    MemoryEdge,
    Origin,
)
from apps.memory.notes.joining import MAX_RELATION_CHARS

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
