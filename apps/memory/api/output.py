"""The JSON of notes and of purges, built by plain functions: a list of a thousand stays fast."""

from datetime import UTC, datetime
from typing import Any

from apps.core.purging.places import SourceText
from apps.memory.history.versions import FileVersion, NoteVersion
from apps.memory.models import Memory, MemoryEdge, PurgeReceipt
from apps.memory.purge.selectors import Preview, off_disk_at
from apps.memory.selectors import RelatedNote


def time_json(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC with Z."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None


def memory_json(note: Memory) -> dict[str, Any]:
    """The whole shape of a note; `note` must come from a selector or be newly made, for its present priority."""
    return {
        "id": str(note.pk),
        "note_id": note.note_id,
        "content": note.content,
        "tier": note.tier,
        "kind": note.kind,
        "importance": note.importance,
        "priority": round(note.present, 6),
        "decay_rate": note.decay_rate,
        "faded": note.faded,
        "tags": note.tags,
        "category": note.category,
        "status": note.status,
        "valid_from": time_json(note.valid_from),
        "valid_to": time_json(note.valid_to),
        "superseded_by": str(note.superseded_by_id) if note.superseded_by_id else None,
        "review_reason": note.review_reason,
        "proposed_action": note.proposed_action,
        "proposed_target": str(note.proposed_target_id) if note.proposed_target_id else None,
        "origin": note.origin,
        "trust": note.trust,
        "source_conversation": str(note.source_conversation_id) if note.source_conversation_id else None,
        "source_message": str(note.source_message_id) if note.source_message_id else None,
        "created_at": time_json(note.created_at),
        "updated_at": time_json(note.updated_at),
        "last_accessed": time_json(note.last_accessed),
        "access_count": note.access_count,
        "deleted_at": time_json(note.deleted_at),
    }


def version_json(version: NoteVersion | FileVersion) -> dict[str, Any]:
    """One entry of the history of a note or file."""
    own = (
        version.state if isinstance(version, NoteVersion) else {"path": version.path, "trust": version.trust}
    )
    return {
        "version": version.version,
        "current": version.current,
        "action": version.action,
        "actor": version.actor,
        "reason": version.reason,
        "at": time_json(version.at),
        "content": version.content,
        **{name: value for name, value in own.items() if name != "change"},
    }


def related_json(related: RelatedNote) -> dict[str, Any]:
    """A note and how it was reached."""
    return {
        **memory_json(related.note),
        "depth": related.depth,
        "relation": related.relation,
        "weight": related.weight,
        "via": str(related.via_id),
    }


def edge_json(edge: MemoryEdge) -> dict[str, Any]:
    """A link."""
    return {
        "id": str(edge.pk),
        "source": str(edge.source_id),
        "target": str(edge.target_id),
        "relation": edge.relation,
        "weight": edge.weight,
        "created_at": time_json(edge.created_at),
    }


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
        "disk": _disk_json(receipt),
    }


def _disk_json(receipt: PurgeReceipt) -> dict[str, Any]:
    """`state` is `done` with the time, or `scheduled`: the worker does it."""
    done = off_disk_at(receipt)
    return {"state": "done" if done else "scheduled", "at": time_json(done)}


def preview_json(preview: Preview) -> dict[str, Any]:
    """What a purge would touch."""
    return {
        "source": preview.source,
        "id": str(preview.id),
        "source_messages": [_source_json(text) for text in preview.sources],
        "related": [_same_json(note) for note in preview.related],
    }


def _source_json(text: SourceText) -> dict[str, Any]:
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


def _same_json(note: Memory) -> dict[str, Any]:
    """A note that shares words with the one to be purged."""
    return {"id": str(note.pk), "note_id": note.note_id, "content": note.content, "status": note.status}
