"""REST inputs and outputs of notes; those of files, purges and reviews stand beside their views."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from operator import not_
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import AfterValidator, Field, model_validator

from apps.core.errors import InvalidInput
from apps.core.http.shapes import (
    ABSENT,
    Checked,
    ClosedInput,
    NoteId,
    OrDefault,
    Query,
    Refused,
    Shape,
    Time,
    TimeParameter,
    text,
)
from apps.core.ids import parse_id
from apps.core.text import clean_text
from apps.memory.models import (
    PRIORITY_FLOOR,
    Kind,
    OccasionsBy,
    Origin,
    Status,
    Tier,
    Trust,
)
from apps.memory.notes.fields import BULK_LIMIT, MAX_CONTENT_CHARS, TAG, MemoryInput
from apps.memory.notes.joining import MAX_RELATION_CHARS
from apps.memory.notes.selectors import MAX_DEPTH, MAX_QUERY_CHARS, ORDERINGS
from apps.search.documents import Source

MAX_SEARCHED_CHARS = 10_000
MESSAGES_USED = 3
MAX_IDS = 200
TEXTS = {"type": "array", "items": {"type": "string", "minLength": 1}}


class MemoryOutput(Shape):
    """A note."""

    id: UUID
    note_id: str = Field(description="`note-` and the id: what the assistant uses.")
    content: str
    tier: Tier
    kind: Kind
    importance: int
    priority: Annotated[float, AfterValidator(partial(round, ndigits=6))] = Field(
        validation_alias="present", description="What it is now, after decay."
    )
    decay_rate: float = Field(description="Lost per chat turn.")
    faded: bool = Field(description=f"Priority below {PRIORITY_FLOOR}: recall_memory leaves it out.")
    tags: list[str]
    category: str
    occasions: list[str] = Field(
        description="When it matters: the situations in which it is brought up."
    )
    occasions_by: OccasionsBy = Field(
        description="Who made them: model, rules (both anew with a new text), user (kept), or nobody yet."
    )
    status: Status
    valid_from: datetime | None
    valid_to: datetime | None
    superseded_by: UUID | None = Field(validation_alias="superseded_by_id")
    review_reason: str = Field(description="Why it waits or waited: untrusted, sensitive, everything.")
    proposed_action: str = Field(description="add, update, supersede, merge: what accepting it does.")
    proposed_target: UUID | None = Field(validation_alias="proposed_target_id")
    origin: Origin
    trust: Trust
    source_conversation: UUID | None = Field(validation_alias="source_conversation_id")
    source_message: UUID | None = Field(validation_alias="source_message_id")
    created_at: datetime
    updated_at: datetime
    last_accessed: datetime | None
    access_count: int = Field(description="How often a tool answered with it or it was brought up.")
    use_count: int = Field(
        description="How often it was brought up or opened; found by a search is no use."
    )
    deleted_at: datetime | None


class RelatedQuery(Query):
    depth: int = Field(2, ge=1, le=MAX_DEPTH, description="Links away.")


class MemoriesQuery(Query):
    """Which notes, and in what order; the fields are those of `NoteFilter`."""

    q: str = Field(
        ABSENT,
        max_length=MAX_QUERY_CHARS,
        description="Words that all must occur in text or tags (see /search/ for meaning).",
    )
    tier: Tier = ABSENT
    kind: Kind = ABSENT
    tag: str = ABSENT
    category: str = ABSENT
    status: Status = Field(ABSENT, description="Default: all but deleted.")
    source: Origin = Field(ABSENT, description="Where notes came from.")
    trust: Trust = Field(ABSENT, description="Whose words they repeat.")
    conversation: NoteId = Field(ABSENT, description="Only those made from what was said there.")
    since: TimeParameter = Field(ABSENT, description="Saved at this time or later.")
    until: TimeParameter = Field(ABSENT, description="Saved before this time.")
    as_of: TimeParameter = Field(ABSENT, description="What held at this time, as it read then.")
    ordering: Literal[tuple(sign + name for name in ORDERINGS for sign in ("", "-"))] = Field(  # type: ignore[valid-type]
        ABSENT, description="Default: -created_at."
    )


class RelatedOutput(MemoryOutput):
    """A note and how it was reached."""

    depth: int
    relation: str
    weight: float
    via: UUID = Field(validation_alias="via_id", description="The note before it on the way.")


class EdgeInput(ClosedInput):
    """A link to another note."""

    target: Annotated[NoteId, Refused("")] = Field(description="The other note's id.")
    relation: Annotated[str, text(MAX_RELATION_CHARS)] = Field(
        "related", description="related, supersedes, contradicts, elaborates or any text"
    )
    weight: float = Field(1.0, ge=0, le=1)


class EdgeOutput(Shape):
    """A link between two notes."""

    id: UUID
    source: UUID = Field(validation_alias="source_id")
    target: UUID = Field(validation_alias="target_id")
    relation: str
    weight: float
    created_at: datetime


class RestoreInput(ClosedInput):
    """Without `version` a deleted or archived note comes back; with it a note goes back to that version."""

    version: int | None = Field(None, ge=1, le=2**31 - 1)


class UndoInput(RestoreInput):
    """Which version to go back to; the one before the last change unless given."""


def texts(value: object, *, field: str, most: int = 100) -> Sequence[str]:
    """A list of texts; None is an empty one."""
    if value is None:
        return []
    if (
        not isinstance(value, list)
        or len(value) > most
        or not all(isinstance(item, str) for item in value)
    ):
        raise InvalidInput(f"{field} must be a list of texts.", code="wrong_type", field=field)
    return value


def _ids(value: object, *, field: str) -> list[UUID]:
    """Ids of rows, each once. Raises NotFound for one that is none."""
    listed = texts(value, field=field, most=MAX_IDS)
    if not listed:
        raise InvalidInput(f"{field} must name at least one.", field=field)
    return list(dict.fromkeys(map(parse_id, listed)))


Ids = Annotated[list[UUID], Checked(_ids, {**TEXTS, "minItems": 1, "maxItems": MAX_IDS}), Refused("")]


class MergeInput(ClosedInput):
    """Notes to make one of."""

    notes: Ids = Field(description="Ids.", json_schema_extra={"minItems": 2, "maxItems": 20})
    into: NoteId | None = Field(None, description="Which of them stays; the first unless given.")
    content: Annotated[str, text(MAX_CONTENT_CHARS)] | None = Field(
        None, description="The text; else all, one below the other."
    )


def _sources(value: object, *, field: str) -> frozenset[Source] | None:
    names = texts(value, field=field)
    if unknown := [name for name in names if name not in set(map(str, Source))]:
        message = f"sources must be among {', '.join(Source)}; {unknown[0][:50]!r} is not."
        raise InvalidInput(message, field=field)
    return frozenset(map(Source, names)) or None


SOURCES = {"type": "array", "items": Source}


class Limits(ClosedInput):
    """Limits of a search."""

    sources: Annotated[frozenset[Source] | None, Checked(_sources, SOURCES)] = Field(
        None, description="Default: all."
    )
    conversation: NoteId | None = Field(None, description="Only what belongs to this conversation.")
    as_of: Time | None = Field(None, description="What held at this time, as it read then.")
    tags: Annotated[list[str], Checked(texts, {**TEXTS, "items": TAG})] = Field(
        ABSENT, description="Only notes with all of these tags."
    )
    threshold: Annotated[float, OrDefault] = Field(
        0.0,
        ge=0,
        le=1,
        description="Nothing with a lower score; 0.45 keeps what is worth showing. Default: everything.",
    )


class SearchInput(Limits):
    """A search request."""

    query: Annotated[str, text(MAX_SEARCHED_CHARS)]
    top_k: Annotated[int, OrDefault] = Field(10, ge=1, le=100)


class ContextItem(Shape):
    """A document that was found."""

    source: Source
    id: UUID = Field(validation_alias="source_id")
    external_id: str
    score: float = Field(
        ge=0, le=1, description="Falls from result to result; means the same for every query."
    )
    reason: str = Field(
        description="Why it was found, in one short sentence: the words it has, a tag, a date."
    )
    untrusted: bool = Field(
        False,
        exclude_if=not_,
        description="Set (and true) where it repeats what pages, files or others said; else absent.",
    )


class HitOutput(ContextItem):
    """A search result."""

    text: str
    parts: dict[str, float] = Field(
        description="The weighted signals that decided the order, by name. `tag:…` and `category:…` are the share of the "
        "question's words that such a label of the note has."
    )
    created_at: datetime = Field(validation_alias="happened_at")


class SearchOutput(Shape):
    """Search results, best first."""

    results: list[HitOutput]
    took_ms: float


def _message_texts(value: object, *, field: str) -> str:
    """The text of the last messages; each is a text itself, or an object with a `content`."""
    if not isinstance(value, list):
        raise InvalidInput("messages must be a list with at least one message.", field=field)
    if not value:
        return ""
    found = [_message_text(message, field)[:MAX_SEARCHED_CHARS] for message in value[-MESSAGES_USED:]]
    joined = "\n".join(filter(None, found))
    return clean_text(joined, field=field, max_chars=MESSAGES_USED * (MAX_SEARCHED_CHARS + 1))


def _message_text(message: object, field: str) -> str:
    content = message.get("content") if isinstance(message, Mapping) else message
    if isinstance(content, list):
        blocks = [
            block for block in content if isinstance(block, Mapping) and block.get("type") == "text"
        ]
        content = "\n".join(texts([block.get("text") for block in blocks], field=field))
    if not isinstance(content, str):
        raise InvalidInput(
            "A message is a text or an object with content.", code="wrong_type", field=field
        )
    return content


MESSAGES = {
    "type": "array",
    "minItems": 1,
    "items": {
        "oneOf": [
            {"type": "string"},
            {
                "type": "object",
                "required": ["content"],
                "properties": {
                    "role": {"type": "string"},
                    "content": {
                        "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "object"}}],
                        "description": "Text, or blocks, of which those of type text count.",
                    },
                },
            },
        ]
    },
}


class ContextInput(Limits):
    """Either a query or the newest messages of a conversation, the last three of which count."""

    openapi = {"oneOf": [{"required": ["query"]}, {"required": ["messages"]}]}
    query: Annotated[str, text(MAX_SEARCHED_CHARS)] | None = None
    messages: Annotated[str, Checked(_message_texts, MESSAGES)] | None = None
    budget_tokens: Annotated[int, OrDefault] = Field(500, ge=1, le=20_000)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.query is None) == (not self.messages):
            field = "query" if self.messages != "" else "messages"
            raise InvalidInput("Send either query or messages.", field=field)
        return self


class ContextOutput(Shape):
    """Text for a model to read before it answers, within the budget."""

    text: str
    tokens: int
    items: list[ContextItem]


def _drafts(value: object, *, field: str) -> list[Any]:
    """Checks for a list; its items are checked when saved, so that an error names its place."""
    if not isinstance(value, list):
        raise InvalidInput("memories must be a list of notes.", code="wrong_type", field=field)
    return value


class MemoryBulkInput(ClosedInput):
    """Notes that are saved together, all or none."""

    memories: Annotated[
        list[Any],
        Checked(_drafts, {"type": "array", "items": MemoryInput, "minItems": 1, "maxItems": BULK_LIMIT}),
    ]


class MemoryBulkOutput(Shape):
    count: int
    results: list[MemoryOutput]
