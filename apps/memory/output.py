"""The JSON of notes, built by plain functions: a list of a thousand stays fast."""

from datetime import UTC, datetime
from typing import Any

from .history.versions import NoteVersion
from .models import Memory, MemoryEdge
from .selectors import PRIORITY_FLOOR, RelatedNote


def time_json(moment: datetime | None) -> str | None:
    """ISO 8601 in UTC with Z."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None


def memory_json(note: Memory) -> dict[str, Any]:
    """The whole shape of a note; `note` must come from a selector or be newly made, for its present priority."""
    present = note.present
    return {
        "id": str(note.pk),
        "note_id": note.note_id,
        "content": note.content,
        "tier": note.tier,
        "kind": note.kind,
        "importance": note.importance,
        "priority": round(present, 6),
        "decay_rate": note.decay_rate,
        "faded": present < PRIORITY_FLOOR,
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


def version_json(version: NoteVersion) -> dict[str, Any]:
    """One entry of a note's history."""
    return {
        "version": version.version,
        "current": version.current,
        "action": version.action,
        "actor": version.actor,
        "reason": version.reason,
        "at": time_json(version.at),
        "content": version.content,
        **{name: value for name, value in version.state.items() if name != "change"},
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
