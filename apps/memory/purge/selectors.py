"""Reads of purges: what one would touch, and the receipts of those that were made."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from apps.core.errors import NotFound
from apps.core.purging.disk import scrubbed_at
from apps.core.purging.places import SourceText
from apps.memory.models import Memory, MemoryEdge, MemoryFile, Purged, PurgeReceipt, Relation

from .services import recorded_sources, sharing_notes
from .tracing import sources_of, trace_of


def receipt_get(user_id: UUID, receipt_id: UUID) -> PurgeReceipt:
    """A receipt of the user; NotFound."""
    receipt = PurgeReceipt.objects.for_user(user_id).filter(pk=receipt_id).first()
    if receipt is None:
        raise NotFound
    return receipt


def off_disk_at(receipt: PurgeReceipt) -> datetime | None:
    """When the file was cleaned after this purge; None while the worker has yet to do it."""
    done = scrubbed_at()
    return done if receipt.purged_at and done and done >= receipt.purged_at else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """`sources` are messages that say the same, `related` notes that do or that it was merged into or replaced by."""

    source: Purged
    id: UUID
    text: str
    sources: Sequence[SourceText]
    related: Sequence[Memory]


def memory_purge_preview(user_id: UUID, memory_id: UUID) -> Preview:
    """NotFound for an unknown or foreign note; one of any status has a preview."""
    note = Memory.objects.with_deleted(user_id).filter(pk=memory_id).first()
    if note is None:
        raise NotFound
    trace = trace_of(user_id=user_id, source=Purged.NOTE, ids=[memory_id])
    near = {*sharing_notes(trace), *_replacing(note)}
    related = Memory.objects.with_deleted(user_id).filter(pk__in=near).order_by("-updated_at")
    return Preview(
        source=Purged.NOTE,
        id=memory_id,
        text=note.content,
        sources=sources_of(trace, recorded_sources(user_id, Purged.NOTE, [memory_id])),
        related=list(related),
    )


def file_purge_preview(user_id: UUID, file_id: UUID) -> Preview:
    """NotFound for an unknown or foreign file."""
    file = MemoryFile.objects.with_deleted(user_id).filter(pk=file_id).first()
    if file is None:
        raise NotFound
    trace = trace_of(user_id=user_id, source=Purged.FILE, ids=[file_id])
    related = Memory.objects.with_deleted(user_id).filter(pk__in=sharing_notes(trace))
    return Preview(
        source=Purged.FILE, id=file_id, text=file.path, sources=sources_of(trace, ()), related=list(related)
    )


def _replacing(note: Memory) -> set[UUID]:
    """The notes that replaced this one or were replaced by it."""
    ends = Q(source=note) | Q(target=note)
    edges = MemoryEdge.objects.owned_by(note.user_id).filter(ends, relation=Relation.SUPERSEDES)
    near = {key for pair in edges.values_list("source_id", "target_id") for key in pair}
    if note.superseded_by_id:
        near.add(note.superseded_by_id)
    return near - {note.pk}
