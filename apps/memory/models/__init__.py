"""Rows of a user's memory, by topic."""

from .base import (
    KEEP_DELETED,
    STANDING,
    Action,
    FileAction,
    Kind,
    Origin,
    Proposal,
    Relation,
    ReviewReason,
    Status,
    Tier,
    Trust,
    is_gone,
)
from .handles import NoteHandle
from .notes import (
    MAX_PATH_CHARS,
    PRIORITY_FLOOR,
    DecayCycle,
    Memory,
    MemoryEdge,
    MemoryFile,
    MemoryFileRevision,
    MemoryRevision,
)
from .receipts import Purged, PurgeReceipt, PurgeState
from .windows import CaptureLease, CaptureWindow, GateVerdict, WindowState

__all__ = [
    "KEEP_DELETED",
    "MAX_PATH_CHARS",
    "PRIORITY_FLOOR",
    "STANDING",
    "Action",
    "CaptureLease",
    "CaptureWindow",
    "DecayCycle",
    "FileAction",
    "GateVerdict",
    "Kind",
    "Memory",
    "MemoryEdge",
    "MemoryFile",
    "MemoryFileRevision",
    "MemoryRevision",
    "NoteHandle",
    "Origin",
    "Proposal",
    "PurgeReceipt",
    "PurgeState",
    "Purged",
    "Relation",
    "ReviewReason",
    "Status",
    "Tier",
    "Trust",
    "WindowState",
    "is_gone",
]
