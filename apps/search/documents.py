"""Inputs and results of search for other apps: plain values, no rows."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class Source(StrEnum):
    """Where a passage's text comes from; also the `source` of a search result."""

    MEMORY = "memory"
    CONVERSATION = "conversation"
    FILE = "file"
    CAPABILITY = "capability"


class Facet(StrEnum):
    """Kind of text in a passage; all facets of a document are one result."""

    TEXT = "text"
    OCCASIONS = "occasions"


@dataclass(frozen=True, slots=True)
class Label:
    """Words that a document is found by although its text need not have them: a `kind` ("tag", "category") and the words."""

    kind: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One note, message, file or capability to be made searchable.

    `(source, source_id)` names it: indexing it again replaces all of its passages. `position` is its place
    inside `conversation_id` (neighbouring positions support each other in ranking); `session` groups the
    messages of one sitting and defaults to the conversation. `speaker` is "user" or "assistant" in Izzy's
    own conversations and the given name in ingested ones. `valid_from`/`valid_to` bound when it is true;
    None means open. All times are aware.

    `past` marks what the document said before it was changed; there may be several beside the present one, valid one
    after the other, and only a search `as_of` another time finds them.

    `labels` join the words of the first passage; they have no part in its vector and are never shown as its text.
    """

    source: Source
    source_id: UUID
    text: str
    happened_at: datetime
    conversation_id: UUID | None = None
    session: str = ""
    position: int = 0
    speaker: str = ""
    external_id: str = ""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    past: bool = False
    labels: tuple[Label, ...] = ()
    facet: Facet = Facet.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Limits of one search, applied before ranking. `only_ids`/`exclude_ids` are source ids.

    `only_ids=None` means all; an empty collection means nothing can match. `as_of=None` means valid now;
    otherwise what was valid then, and had happened by then where no `valid_from` says more.
    """

    sources: frozenset[Source] | None = None
    conversation_id: UUID | None = None
    only_ids: Collection[UUID] | None = None
    exclude_ids: Collection[UUID] = ()
    as_of: datetime | None = None


REASONS = {
    "keywords": "the same words",
    "words": "the same words",
    "meaning": "near in meaning",
    "surroundings": "near in meaning",
    "sitting": "said in a talk about it",
    "name": "by or about someone named",
    "company": "said beside someone named",
    "answer": "answers such a question",
    "time": "says when",
    "date": "from the time asked about",
}
"""Meanings of the parts of a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One found document, represented by its best passage.

    `score`, 0..1, falls from hit to hit and means the same for every query: from 0.45 on a hit is worth showing.
    `parts` names the signals that decided the order.
    """

    source: Source
    source_id: UUID
    external_id: str
    passage_id: int
    text: str
    score: float
    conversation_id: UUID | None
    happened_at: datetime
    speaker: str = ""
    parts: dict[str, float] = field(default_factory=dict)
    labels: tuple[Label, ...] = ()  # those that the question asks for

    @property
    def reason(self) -> str:
        """Why it was found, in a few words: the labels asked for and what else decided most."""
        said = [f"{label.kind} {label.words}" for label in self.labels]
        best = max(
            (name for name in self.parts if name in REASONS), key=self.parts.__getitem__, default=""
        )
        if best and self.parts[best] > 0 and not (said and best == "keywords"):
            said.append(REASONS[best])
        return ", ".join(said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A context block: `text` of `tokens` (estimated) tokens and the hits whose text it carries."""

    text: str
    tokens: int
    items: list[Hit]
