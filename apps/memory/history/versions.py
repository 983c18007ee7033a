"""The versions of a note or file: what it held, who made it so, and what differs from the version before.

A revision holds the state that a change ended, so what is told of that change belongs to the version after it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Generic, TypeVar

from apps.memory.models import (
    Action,
    FileAction,
    Memory,
    MemoryFile,
    MemoryFileRevision,
    MemoryRevision,
)

from .diffs import Piece, text_diff
from .states import note_state

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
