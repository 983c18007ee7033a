"""Rows of a user's memory, by topic."""

from .files import MAX_PATH_CHARS, FileAction, MemoryFile, MemoryFileRevision
from .notes import (
    KEEP_DELETED,
    Action,
    DecayCycle,
    Kind,
    Memory,
    MemoryEdge,
    MemoryManager,
    MemoryRevision,
    Origin,
    Relation,
    Status,
    Tier,
    Trust,
)

__all__ = [
    "KEEP_DELETED",
    "MAX_PATH_CHARS",
    "Action",
    "DecayCycle",
    "FileAction",
    "Kind",
    "Memory",
    "MemoryEdge",
    "MemoryFile",
    "MemoryFileRevision",
    "MemoryManager",
    "MemoryRevision",
    "Origin",
    "Relation",
    "Status",
    "Tier",
    "Trust",
]
