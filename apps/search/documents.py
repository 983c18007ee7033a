"""Inputs and results of search for other apps: plain values, no rows."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from apps.core.text import truncated


class Source(StrEnum):
    """Where a passage's text comes from; also the `source` of a search result."""

    MEMORY = "memory"
    CONVERSATION = "conversation"
    FILE = "file"
    CAPABILITY = "capability"


class Facet(StrEnum):
    """Kind of text of a document: what it says, or the occasions on which it matters, one a line, which search
    does without (`index/occasions.py`)."""

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
    messages of one session and defaults to the conversation. `speaker` is "user" or "assistant" in Izzy's
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Causes:
    """The causes that brought a document, as far as it can be named; what is empty had no part in it.

    `words` are those of the question that the passage has. `near` is the word or clause of the message that is near in
    meaning to the `occasion` of the note, or to `meaning`, words of its text. `date` is when it happened, in the user's time
    zone, where that was asked about; `link` is the text of the document that led to it.
    """

    words: tuple[str, ...] = ()
    occasion: str = ""
    date: datetime | None = None
    link: str = ""
    meaning: str = ""
    near: str = ""


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
    causes: Causes = Causes()

    @property
    def reason(self) -> str:
        """One short sentence in plain words that says why it was found; "" where nothing is known."""
        causes, labels, parts = self.causes, self.labels, self.parts
        if causes.link:
            return f"Linked to {_quoted(causes.link)}."
        if causes.occasion and not causes.near:
            return f"Matters when it is about {_quoted(causes.occasion)}."
        if causes.near:
            near = causes.occasion or causes.meaning
            return f"Came up because of {_quoted(causes.near)}{f', which is near {_quoted(near)}' * bool(near)}."
        tags = [label.words for label in labels if label.kind == "tag"]
        facts = [f"tagged {_joined(map(_quoted, tags))}"] if tags else []
        facts += [
            f"in the {label.kind} {_quoted(label.words)}" for label in labels if label.kind != "tag"
        ]
        if causes.date:
            facts.append(f"from {causes.date.day} {causes.date:%B %Y}, the date you asked about")
        if causes.words:
            noun = "word" if len(causes.words) == 1 else "words"
            facts = [
                f"has the {noun} {_joined(map(_quoted, causes.words))}",
                *(f"is {fact}" for fact in facts),
            ]
        if facts:
            said = _joined(facts)
            return f"{said[0].upper()}{said[1:]}."
        best = max((name for name in parts if name in REASONS), key=parts.__getitem__, default="")
        return REASONS[best] if best and parts[best] > 0 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A context block: `text` of `tokens` (estimated) tokens and the hits whose text it carries."""

    text: str
    tokens: int
    items: list[Hit]


REASONS = {
    "keywords": "Has the same words, or stands beside them.",
    "words": "Has the same words.",
    "mentioned": "Has the same words.",
    "meaning": "Near in meaning.",
    "surroundings": "Near in meaning, with what was said around it.",
    "encoder": "Near in meaning.",
    "adapted": "Matters to messages like this one.",
    "encoder_surroundings": "Near in meaning, with what was said around it.",
    "name": "By or about someone the question speaks of.",
    "answer": "Answers such a question.",
    "date": "From the time you asked about.",
}
"""Sentences for the parts of a score where no cause can be named."""
MAX_QUOTED_CHARS = 60


def _joined(texts: Iterable[str]) -> str:
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last


def _quoted(text: str) -> str:
    return f"‘{truncated(' '.join(text.split()), MAX_QUOTED_CHARS)}’"
