"""Versions of notes and files, the texts of a time, and what differs between two texts."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any, Literal

from apps.memory.models import (
    Action,
    FileAction,
    Memory,
    MemoryFile,
    MemoryFileRevision,
    MemoryRevision,
    Status,
)

from .revisions import time_in

Kind = Literal["same", "added", "removed"]

_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_LINE = re.compile(r"[^\n]*\n?")
MAX_COMPARED = 700
"""Of longer stretches of words the lines are compared; a stretch of more lines counts as replaced as a whole. Comparing
takes time by the square of its length."""


@dataclass(frozen=True, slots=True)
class DiffPiece:
    """A run of text that stands in both (`same`), only in the new (`added`) or only in the old (`removed`)."""

    kind: Kind
    text: str


def text_diff(old: str, new: str) -> list[DiffPiece]:
    """How `new` came from `old`: joined, the same and added pieces are `new`, the same and removed ones `old`.

    What both begin or end with is left out of the comparison, so an edit of a long text is shown word by word.
    """
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    before, after = _tokens(old[head : len(old) - tail], new[head : len(new) - tail])
    pieces = [DiffPiece("same", old[:head])]
    start = first = 0
    for end, last, size in _common(before, after):
        pieces.append(DiffPiece("removed", "".join(before[start:end])))
        pieces.append(DiffPiece("added", "".join(after[first:last])))
        pieces.append(DiffPiece("same", "".join(before[end : end + size])))
        start, first = end + size, last + size
    pieces.append(DiffPiece("same", old[len(old) - tail :]))
    runs = groupby((piece for piece in pieces if piece.text), lambda piece: piece.kind)
    return [DiffPiece(kind, "".join(piece.text for piece in run)) for kind, run in runs]


def _shared(one: str, two: str) -> int:
    """How many characters two texts begin with in common, up to the end of a word."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == two[:middle] else (low, middle - 1)
    return max(one.rfind(" ", 0, low), one.rfind("\n", 0, low)) + 1


def _tokens(old: str, new: str) -> tuple[list[str], list[str]]:
    """Splits texts into words, else lines, else leaves them whole."""
    for split in (_WORD, _LINE):
        before, after = (list(filter(None, split.findall(text))) for text in (old, new))
        if max(len(before), len(after)) <= MAX_COMPARED:
            return before, after
    return [old], [new]


def _common(before: list[str], after: list[str]) -> list[tuple[int, int, int]]:
    """Runs of words that stand in both, as (place in the old, place in the new, length); the last has length 0.

    A run of nothing but space or signs between two changes is no help to a reader: it counts as changed.
    """
    *runs, end = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    kept = []
    for one, two, size in runs:
        begins = one == two == 0
        ends = (one + size, two + size) == (len(before), len(after))
        if begins or ends or any(token[0].isalnum() for token in before[one : one + size]):
            kept.append((one, two, size))
    return [*kept, end]


CREATED = "created"
KEPT = "kept"
"""Made the oldest version where older ones are not kept any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A state of a note or file: what it held from `at` on, and who made it so, why."""

    version: int
    content: str
    state: dict[str, Any]  # all else that a user may change; of a file its path and trust
    action: str
    action_label: str  # in a word: Saved, Changed, Merged …
    actor: str
    reason: str
    at: datetime
    current: bool  # the note or file itself


def versions_kept(
    row: Memory | MemoryFile,
    revisions: Sequence[MemoryRevision | MemoryFileRevision],
    states: Sequence[dict[str, Any]],
    *,
    created: str,
) -> list[Version]:
    """The versions of a note or file that are kept, newest first, in these states; `created` says how it came to be.

    A revision holds the state that a change ended, so what it says of that change belongs to the version after it.
    """
    labels = {
        **dict(Action.choices),
        **dict(FileAction.choices),
        KEPT: "The oldest that is kept",
        CREATED: created,
    }
    first = revisions[0].version if revisions else 1
    versions = []
    for place, (held, state) in enumerate(zip([*revisions, row], states, strict=True)):
        made = revisions[place - 1] if place else None
        action = made.action if made else CREATED if first == 1 else KEPT
        versions.append(
            Version(
                version=first + place,
                content=held.content,
                state=state,
                action=action,
                action_label=str(labels[action]),
                actor=made.actor if made else row.origin,
                reason=made.reason if made else "",
                at=(made or row).created_at,
                current=held is row,
            )
        )
    return versions[::-1]


@dataclass(frozen=True, slots=True)
class Step:
    """A version, and how its text came from that of the version before; empty for the first and where none differs."""

    version: Version
    diff: tuple[DiffPiece, ...] = ()


def steps_of(versions: Sequence[Version], shown: Callable[[str], str] = str) -> list[Step]:
    """The versions, newest first as they are given, as steps; `shown` makes of a text what the page shows of it."""
    steps = []
    for version, former in zip(versions, [*versions[1:], versions[-1]], strict=True):
        differs = former.content != version.content
        diff = text_diff(shown(former.content), shown(version.content)) if differs else ()
        steps.append(Step(version, tuple(diff)))
    return steps


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
    did. It holds until the next does, or until its own `valid_to`. `shown` is False while it waited, was archived or deleted.
    """
    states = [(row.content, row.state["status"], time_in(row, "valid_from")) for row in revisions]
    states.append((note.content, note.status, note.valid_from))
    spans: list[Span] = []
    whole = not revisions or revisions[0].version == 1
    start = states[0][2] or (note.created_at if whole else revisions[0].created_at)
    shown, ended = False, note.created_at
    for place, (text, status, valid_from) in enumerate(states):
        shown = shown or status in SEARCHABLE
        if place == len(revisions):
            spans.append(Span(text, start, None, shown))
        elif states[place + 1][0] != text:
            own, changed = states[place + 1][2], revisions[place].created_at
            end = own if own is not None and own != valid_from and own > start else changed
            if end > start:
                state, until = revisions[place].state, time_in(revisions[place], "valid_to") or end
                if until > start:
                    held = min(end, until)
                    spans.append(Span(text, start, held, shown, state["tags"], state["category"]))
                start = ended = end
            else:  # it was to hold from a time ahead, and never did
                start = own or end
            shown = False
        elif states[place + 1][2] != valid_from:
            start = states[place + 1][2] or ended
    return spans
