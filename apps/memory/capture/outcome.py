"""What came of a window."""

from dataclasses import dataclass, field
from uuid import UUID

from .items import Dropped


@dataclass(slots=True)
class Outcome:
    """What came of a window."""

    added: int = 0
    merged: int = 0
    superseded: int = 0
    pending: int = 0
    skipped: int = 0
    injected_again: int = 0
    dropped: list[Dropped] = field(default_factory=list)
    memory_ids: list[UUID] = field(default_factory=list)
