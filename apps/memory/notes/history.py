"""Versions of notes and files, the texts of a time, and what differs between two texts."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from typing import Any, ClassVar, Generic, Literal, TypeVar

from apps.core.http.shapes import clean_time
from apps.memory.models import (
    Action,
    FileAction,
    Memory,
    MemoryFile,
    MemoryFileRevision,
    MemoryRevision,
    Status,
)

from .revisions import note_state

Kind = Literal["same", "added", "removed"]

_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_LINE = re.compile(r"[^\n]*\n?")
MAX_COMPARED = 700
"""Of longer stretches of words the lines are compared; a stretch of more lines counts as replaced as a whole. Comparing
takes time by the square of its length."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text that stands in both (`same`), only in the new (`added`) or only in the old (`removed`)."""

    kind: Kind
    text: str

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "text": self.text}


def text_diff(old: str, new: str) -> list[Piece]:
    """How `new` came from `old`: joined, the same and added pieces are `new`, the same and removed ones `old`.

    What both begin or end with is left out of the comparison, so an edit of a long text is shown word by word.
    """
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    middle = old[head : len(old) - tail], new[head : len(new) - tail]
    begins, ends = Piece("same", old[:head]), Piece("same", old[len(old) - tail :])
    return _joined([begins, *_compared(*_tokens(*middle)), ends])


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


def _compared(before: list[str], after: list[str]) -> list[Piece]:
    pieces: list[Piece] = []
    start = first = 0
    for end, last, size in _common(before, after):
        pieces.append(Piece("removed", "".join(before[start:end])))
        pieces.append(Piece("added", "".join(after[first:last])))
        pieces.append(Piece("same", "".join(before[end : end + size])))
        start, first = end + size, last + size
    return pieces


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Without empty pieces, and one for neighbours of a kind."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and piece.text and joined[-1].kind == piece.kind:
            joined[-1] = Piece(piece.kind, joined[-1].text + piece.text)
        elif piece.text:
            joined.append(piece)
    return joined


def _common(before: list[str], after: list[str]) -> list[tuple[int, int, int]]:
    """Runs of words that stand in both, as (place in the old, place in the new, length); the last has length 0.

    A run of nothing but space or signs between two changes is no help to a reader: it counts as changed.
    """
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    *runs, end = ((block.a, block.b, block.size) for block in blocks)
    kept = [
        run for run in runs if _tells(before[run[0] : run[0] + run[2]]) or _at_an_edge(run, before, after)
    ]
    return [*kept, end]


def _tells(tokens: list[str]) -> bool:
    return any(token[0].isalnum() for token in tokens)


def _at_an_edge(run: tuple[int, int, int], before: list[str], after: list[str]) -> bool:
    """Whether a run begins or ends both."""
    begins = run[0] == run[1] == 0
    return begins or (run[0] + run[2] == len(before) and run[1] + run[2] == len(after))


CREATED = "created"
KEPT = "kept"
"""Made the oldest version where older ones are not kept any more."""
OLDEST = "The oldest that is kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One state: what it held from `at` on, and who made it so, why. `current` is the note or file itself."""

    version: int
    content: str
    action: str
    actor: str
    reason: str
    at: datetime
    current: bool

    labels: ClassVar[dict[str, str]]

    @property
    def action_label(self) -> str:
        """The action in a word: Saved, Changed, Merged …"""
        return self.labels[self.action]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteVersion(Version):
    """A state of a note; `state` is all that a user may change, but for the content."""

    state: dict[str, Any]

    labels: ClassVar[dict[str, str]] = {**dict(Action.choices), CREATED: "Saved", KEPT: OLDEST}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVersion(Version):
    """A state of a file."""

    path: str
    trust: str

    labels: ClassVar[dict[str, str]] = {
        **dict(FileAction.choices),
        CREATED: "Created",
        KEPT: OLDEST,
    }


def note_versions(note: Memory, revisions: Sequence[MemoryRevision], cycle: int) -> list[NoteVersion]:
    """The versions of a note that are kept, oldest first; its priority now is that at the user's decay cycle `cycle`."""
    states = [(row.content, row.state) for row in revisions] + [(note.content, note_state(note, cycle))]
    told = _told(note, revisions)
    return [
        NoteVersion(content=content, state=state, **made)
        for (content, state), made in zip(states, told, strict=True)
    ]


def file_versions(file: MemoryFile, revisions: Sequence[MemoryFileRevision]) -> list[FileVersion]:
    """The versions of a file that are kept, oldest first."""
    states = [(row.content, row.path, row.trust) for row in revisions]
    states.append((file.content, file.path, file.trust))
    told = _told(file, revisions)
    return [
        FileVersion(content=content, path=path, trust=trust, **made)
        for (content, path, trust), made in zip(states, told, strict=True)
    ]


def _told(
    row: Memory | MemoryFile, revisions: Sequence[MemoryRevision | MemoryFileRevision]
) -> Iterator[dict[str, Any]]:
    """Yields for each version, the present one of `row` last, its number and the change that made it."""
    first = revisions[0].version if revisions else 1
    last = first + len(revisions)
    action = CREATED if first == 1 else KEPT
    made = {"action": action, "actor": row.origin, "reason": "", "at": row.created_at}
    for number, revision in enumerate(revisions, first):
        yield {**made, "version": number, "current": False}
        made = {
            "action": revision.action,
            "actor": revision.actor,
            "reason": revision.reason,
            "at": revision.created_at,
        }
    yield {**made, "version": last, "current": True}


V = TypeVar("V", bound=Version)


@dataclass(frozen=True, slots=True)
class Step(Generic[V]):
    """A version, and how its text came from that of the version before; empty for the first and where none differs."""

    version: V
    diff: tuple[Piece, ...] = ()


def steps_of(versions: Sequence[V], shown: Callable[[str], str] = str) -> list[Step[V]]:
    """The versions, newest first as they are given, as steps; `shown` makes of a text what the page shows of it."""
    steps = []
    for place, version in enumerate(versions):
        former = versions[place + 1].content if place + 1 < len(versions) else version.content
        differs = former != version.content
        diff = text_diff(shown(former), shown(version.content)) if differs else ()
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
