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
    Proposal,
    Relation,
    ReviewReason,
    Status,
    Tier,
    Trust,
)
from .receipts import Purged, PurgeReceipt, PurgeState
from .windows import CaptureLease, CaptureWindow, GateVerdict, WindowState

__all__ = [
    "KEEP_DELETED",
    "MAX_PATH_CHARS",
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
    "MemoryManager",
    "MemoryRevision",
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
]
