"""Every write to a user's memory: synchronous, keyword-only, one transaction each, search index included.

All raise `apps.core.errors`: InvalidInput and TooLarge for what a note cannot hold, NotFound for an id that is
unknown, deleted or somebody else's.
"""

from .changes import memory_archive, memory_update
from .creation import memory_bulk_create, memory_create
from .decay import access_record, cycle_advance, decay_apply
from .deletion import memories_erase, memory_delete, user_forget
from .edges import edge_create, edge_delete
from .merging import MAX_MERGED, memory_absorb, memory_merge
from .proposals import memory_submit
from .provenance import BY_ASSISTANT, BY_USER, Change, Provenance
from .superseding import contradiction_resolve, memory_supersede, superseded_due
from .undoing import memory_restore, memory_undo

__all__ = [
    "BY_ASSISTANT",
    "BY_USER",
    "MAX_MERGED",
    "Change",
    "Provenance",
    "access_record",
    "contradiction_resolve",
    "cycle_advance",
    "decay_apply",
    "edge_create",
    "edge_delete",
    "memories_erase",
    "memory_absorb",
    "memory_archive",
    "memory_bulk_create",
    "memory_create",
    "memory_delete",
    "memory_merge",
    "memory_restore",
    "memory_submit",
    "memory_supersede",
    "memory_undo",
    "memory_update",
    "superseded_due",
    "user_forget",
]
