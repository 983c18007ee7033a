"""Former texts of notes and their times, for a search as of another time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from apps.core.http.shapes import clean_time
from apps.memory.models import Memory, MemoryRevision, Status

SEARCHABLE = frozenset({Status.ACTIVE, Status.SUPERSEDED})
"""Superseded notes stay in the index: a search `as_of` an earlier time finds them, one of today does not."""

MAX_FORMER = 100
"""Former texts of one note that are kept searchable; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Span:
    """A text that a note had from `start` on, until `end` (None: it still has it, or its validity ends it)."""

    text: str
    start: datetime
    end: datetime | None
    shown: bool = True
    tags: Sequence[str] = ()  # those that it had last
    category: str = ""


def spans_of(note: Memory, revisions: Sequence[MemoryRevision]) -> list[Span]:
    """The texts of a note, oldest first and the present one last; `revisions` are all that are kept, in order.

    A text holds from the change that brought it, or from the `valid_from` that came with that change; the first from
    the note's own `valid_from`, or else from when it was made; where older versions are not kept, from when it certainly
    did. `shown` is False while it waited, was archived or deleted.
    """
    states = [(row.content, row.state["status"], _valid_from(row)) for row in revisions]
    states.append((note.content, note.status, note.valid_from))
    spans: list[Span] = []
    whole = not revisions or revisions[0].version == 1
    start = states[0][2] or (note.created_at if whole else revisions[0].created_at)
    shown = False
    for place, (text, status, valid_from) in enumerate(states):
        shown = shown or status in SEARCHABLE
        if place == len(revisions):
            spans.append(Span(text, start, None, shown))
        elif states[place + 1][0] != text:
            own, changed = states[place + 1][2], revisions[place].created_at
            end = own if own is not None and own != valid_from and own > start else changed
            if end > start:
                state = revisions[place].state
                spans.append(Span(text, start, end, shown, state["tags"], state["category"]))
                start = end
            else:  # it was to hold from a time ahead, and never did
                start = own or end
            shown = False
        elif states[place + 1][2] != valid_from:
            start = states[place + 1][2] or (spans[-1].end if spans else None) or note.created_at
    return spans


def _valid_from(revision: MemoryRevision) -> datetime | None:
    moment = revision.state["valid_from"]
    return clean_time(moment, field="valid_from") if moment else None
