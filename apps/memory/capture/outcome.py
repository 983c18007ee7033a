"""Outcomes of windows."""

from dataclasses import dataclass, field, fields
from uuid import UUID

from .items import Dropped


@dataclass(slots=True)
class Counts:
    """Items by what came of them: `pending` wait for the user's review, `injected_again` are Izzy's own notes."""

    added: int = 0
    merged: int = 0
    superseded: int = 0
    pending: int = 0
    skipped: int = 0
    injected_again: int = 0

    def count(self, other: "Counts") -> None:
        """Adds the figures of another."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))


COUNTS = tuple(column.name for column in fields(Counts))


@dataclass(slots=True)
class Outcome(Counts):
    """Outcome of one window, or of one of its items."""

    dropped: list[Dropped] = field(default_factory=list)
    memory_ids: list[UUID] = field(default_factory=list)

    def skip(self, code: str) -> None:
        """An item that brings nothing new, and why."""
        self.skipped += 1
        self.dropped.append(Dropped(code))

    def add(self, other: "Outcome") -> None:
        self.count(other)
        self.dropped += other.dropped
        self.memory_ids += other.memory_ids
