"""Where texts of the user's rows are kept: what an app says about its own columns and about what no column shows."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

from apps.core.purging.trace import Trace

EXCERPT = 300

Hits: TypeAlias = Mapping[str, Sequence[Any]]
"""By column (`chat.message.text`) the primary keys of the rows in which something was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """`label` names it for people, `columns` (`app_label.model.field`) are those it answers for, `why` says what it
    means when something is left there.

    `keep`: the columns hold words of the user, which are never cleaned by themselves. Their fragments count as shared
    and are cleaned nowhere, but for the rows of `exempt(trace)` (keys by column) and where they are `offered`: the user
    is asked whether they go too. `wordless`: packed numbers, which go with their row and are not looked into. `clear(trace, hits)` cleans in its own way and returns how many rows it
    changed; None: string by string. `expand(trace)` gives ids that stand for what is purged, before anything is
    cleaned. `look(trace)` counts what no column shows (postings, the memory of this process). `busy(trace, hits)`:
    somebody works with what was found and would write it again.
    """

    label: str
    columns: tuple[str, ...] = ()
    why: str = ""
    keep: bool = False
    offered: bool = False
    wordless: bool = False
    exempt: Callable[[Trace], Mapping[str, Collection[Any]]] | None = None
    clear: Callable[[Trace, Hits], int] | None = None
    expand: Callable[[Trace], set[str]] | None = None
    look: Callable[[Trace], int] | None = None
    busy: Callable[[Trace, Hits], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """A message that says what a note says; `recorded` where the note itself names it as its source."""

    id: UUID
    conversation_id: UUID
    role: str
    title: str
    text: str
    created_at: datetime
    recorded: bool = False

    @property
    def excerpt(self) -> str:
        """Its beginning, for a list to choose from."""
        return self.text if len(self.text) <= EXCERPT else f"{self.text[: EXCERPT - 1]}…"
