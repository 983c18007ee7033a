"""Receipts and previews as JSON."""

from typing import Any

from apps.core.purging.disk import scrubbed_at
from apps.core.purging.places import SourceText
from apps.memory.models import Memory, PurgeReceipt
from apps.memory.output import time_json

from .preview import Preview


def receipt_json(receipt: PurgeReceipt) -> dict[str, Any]:
    """A receipt: ids and counts. `disk` says whether the file has been cleaned since."""
    first = receipt.subject_ids[0] if receipt.subject_ids else None
    return {
        "id": str(receipt.pk),
        "source": receipt.source,
        "memory_id": first,
        "ids": receipt.subject_ids,
        "state": receipt.state,
        "by_sweep": receipt.by_sweep,
        "started_at": time_json(receipt.started_at),
        "purged_at": time_json(receipt.purged_at),
        "places": receipt.places,
        "left": receipt.left,
        "source_messages": receipt.source_messages,
        "related": receipt.related_ids,
        "disk": disk_json(receipt),
    }


def disk_json(receipt: PurgeReceipt) -> dict[str, Any]:
    """`state` is `done` with the time, or `scheduled`: the worker does it."""
    done = scrubbed_at()
    if receipt.purged_at and done and done >= receipt.purged_at:
        return {"state": "done", "at": time_json(done)}
    return {"state": "scheduled", "at": None}


def preview_json(preview: Preview) -> dict[str, Any]:
    """What a purge would touch."""
    return {
        "source": preview.source,
        "id": str(preview.id),
        "source_messages": [source_json(text) for text in preview.sources],
        "related": [related_json(note) for note in preview.related],
    }


def source_json(text: SourceText) -> dict[str, Any]:
    """A message that could be redacted too."""
    return {
        "id": str(text.id),
        "conversation": str(text.conversation_id),
        "role": text.role,
        "title": text.title,
        "excerpt": text.excerpt,
        "recorded": text.recorded,
        "created_at": time_json(text.created_at),
    }


def related_json(note: Memory) -> dict[str, Any]:
    """A note that shares words with the one to be purged."""
    return {"id": str(note.pk), "note_id": note.note_id, "content": note.content, "status": note.status}
