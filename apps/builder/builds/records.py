"""Records of builds that have ended, with what builder and user said to each other, as an export has them; and how they are taken
in, to be looked at. What was allowed for them, and the builder's talk with its model, is no part of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from apps.builder.models import (
    OPEN_STATES,
    Build,
    BuilderMessage,
    Direction,
    Kind,
    MessageType,
)
from apps.core.db.writing import insert_all
from apps.core.http.shapes import Lax, text
from apps.core.transfer import (
    GONE,
    KNOWN,
    OWN_ONLY,
    Entry,
    Ids,
    RecordId,
    RecordInput,
    RecordTime,
    Row,
    Taking,
    Write,
    ids_here,
    paged,
    row_of,
    shaped,
    write_nothing,
)

MAX_TEXT_CHARS = 200_000
PERMISSIONS = frozenset({"network", "secrets"})
"""Questions for these, and their answers, stay here."""
_Text = Annotated[str, text(MAX_TEXT_CHARS, allow_empty=True)]


class BuildRecord(RecordInput):
    """A build that has ended."""

    id: RecordId
    capability: RecordId
    name: Annotated[str, text(48)]
    kind: Annotated[Kind, Lax]
    description: _Text = ""
    input_schema: dict[str, Any] = Field(default_factory=dict)
    request: _Text = ""
    feedback: _Text = ""
    state: Literal["done", "failed", "cancelled"]
    reason: _Text = ""
    error_code: Annotated[str, text(48, allow_empty=True)] = ""
    last_error: _Text = ""
    version: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    conversation: RecordId | None = None
    turn: RecordId | None = None
    created_at: RecordTime
    started_at: RecordTime | None = None
    ended_at: RecordTime | None = None


class BuilderMessageRecord(RecordInput):
    """A message between builder and user."""

    build: RecordId
    number: Annotated[int, Field(ge=1, le=2**31 - 1)]
    direction: Annotated[Direction, Lax]
    kind: Annotated[MessageType, Lax]
    payload: dict[str, Any] = Field(default_factory=dict)
    created_at: RecordTime


def build_rows(user_id: UUID) -> Iterator[Row]:
    """Each build that has ended, with its messages behind it, oldest first."""
    for build in paged(Build.objects.for_user(user_id).exclude(state__in=OPEN_STATES), 50):
        yield row_of("build", BuildRecord, build)
        for message in list(build.messages.order_by("number")):
            if message.payload.get("kind") not in PERMISSIONS:
                yield row_of("builder_message", BuilderMessageRecord, message, kind=message.type)


def builds_plan(taking: Taking, entries: Sequence[Entry]) -> Write:
    """Plans builds with their messages."""
    if not taking.own:
        for entry in entries:
            taking.report.skip(entry, OWN_ONLY)
        return write_nothing
    heads = shaped(taking, [e for e in entries if e.kind == "build"], BuildRecord)
    given = shaped(taking, [e for e in entries if e.kind == "builder_message"], BuilderMessageRecord)
    ids = ids_here(taking, "build", {each.id for _, each in heads} | {each.build for _, each in given})
    capabilities = ids_here(taking, "capability", {each.capability for _, each in heads})
    talks = ids_here(taking, "conversation", {each.conversation for _, each in heads})
    turns = ids_here(taking, "turn", {each.turn for _, each in heads})
    made: dict[UUID, Build] = {}
    for entry, record in heads:
        if ids.known(record.id) or ids[record.id] in made:
            taking.report.skip(entry, KNOWN)
        elif not capabilities.known(record.capability):
            taking.report.skip(entry, GONE)
        else:
            made[ids[record.id]] = Build(
                id=ids[record.id],
                user_id=taking.user_id,
                capability_id=capabilities[record.capability],
                conversation_id=record.conversation and talks[record.conversation],
                turn_id=record.turn and turns[record.turn],
                has_transcript=False,
                **record.columns(Build),
            )
            taking.report.take("build")
    messages = _messages(taking, given, made, ids)
    taking.fresh |= made.keys()

    def write() -> None:
        insert_all(list(made.values()))
        insert_all(messages)

    return write if made else write_nothing


def _messages(
    taking: Taking,
    given: Sequence[tuple[Entry, BuilderMessageRecord]],
    made: Mapping[UUID, Build],
    ids: Ids,
) -> list[BuilderMessage]:
    """The messages of new builds."""
    messages: dict[tuple[UUID, int], BuilderMessage] = {}
    for entry, said in given:
        key = ids[said.build]
        if key not in made:
            taking.report.skip(entry, KNOWN if ids.known(said.build) else GONE)
        elif (key, said.number) in messages:
            taking.report.skip(entry, KNOWN)
        else:
            taking.report.take("builder_message")
            made[key].messages_count = max(made[key].messages_count, said.number)
            messages[key, said.number] = BuilderMessage(
                user_id=taking.user_id,
                build_id=key,
                type=said.kind,
                read=True,
                **said.columns(BuilderMessage),
            )
    return list(messages.values())
