"""Reads of a user's memory. Synchronous: from async code call through `apps.core.database.in_db`."""

from .filters import ORDERINGS, NoteFilter, memories_list
from .graph import MAX_DEPTH, RelatedNote, links_of, open_contradictions, related_notes
from .history import note_history, texts_at
from .notes import (
    current_cycle,
    memories_by_id,
    memory_get,
    present_priority,
    standing_notes,
    with_present_priority,
)
from .relevant import RelevantNote, memory_matching, memory_recall, memory_relevant
from .stats import memory_stats

__all__ = [
    "MAX_DEPTH",
    "ORDERINGS",
    "NoteFilter",
    "RelatedNote",
    "RelevantNote",
    "current_cycle",
    "links_of",
    "memories_by_id",
    "memories_list",
    "memory_get",
    "memory_matching",
    "memory_recall",
    "memory_relevant",
    "memory_stats",
    "note_history",
    "open_contradictions",
    "present_priority",
    "related_notes",
    "standing_notes",
    "texts_at",
    "with_present_priority",
]
