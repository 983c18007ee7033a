"""Rows of a user's memory, by topic."""

from .base import (
    STANDING,
    Action,
    FileAction,
    Kind,
    OccasionsBy,
    OccasionsWait,
    Origin,
    Proposal,
    Relation,
    ReviewReason,
    Status,
    Tier,
    Trust,
)
from .deletion import KEEP_DELETED, Purged, PurgeReceipt, PurgeState, is_gone
from .handles import NoteHandle
from .imports import OPEN_IMPORTS, Import, ImportState
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
from .summary import MemorySummary
from .uses import MemoryUse, UsedIn
from .windows import CaptureLease, CaptureWindow, GateVerdict, WindowState

__all__ = [
    "KEEP_DELETED",
    "MAX_PATH_CHARS",
    "OPEN_IMPORTS",
    "PRIORITY_FLOOR",
    "STANDING",
    "Action",
    "CaptureLease",
    "CaptureWindow",
    "DecayCycle",
    "FileAction",
    "GateVerdict",
    "Import",
    "ImportState",
    "Kind",
    "Memory",
    "MemoryEdge",
    "MemoryFile",
    "MemoryFileRevision",
    "MemoryRevision",
    "MemorySummary",
    "MemoryUse",
    "NoteHandle",
    "OccasionsBy",
    "OccasionsWait",
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
    "UsedIn",
    "WindowState",
    "is_gone",
]
