"""The shapes of the REST interface of builds."""

from dataclasses import asdict
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from apps.builder.builds.requesting import MAX_FEEDBACK_CHARS, held_up
from apps.builder.builds.running import MAX_ANSWER_CHARS
from apps.builder.builds.selectors import (
    build_later,
    build_seconds,
    build_usage,
    messages_after,
    open_questions,
    secrets_wanted,
    transcript,
)
from apps.builder.models import Build, Direction, Kind, MessageType, State
from apps.capabilities.catalog.drafts import clean_description, clean_name
from apps.capabilities.models import MAX_DESCRIPTION_CHARS
from apps.core.http.shapes import ABSENT, Beside, Checked, Id, Moment, OpenInput, Query, Shape, text
from apps.core.text import NOT_BLANK, is_yes

NAME = {"type": "string", "minLength": 1}
NEW_NAME = {**NAME, "pattern": "^[a-z][a-z0-9_]{1,47}$"}
DESCRIPTION = {**NAME, "maxLength": MAX_DESCRIPTION_CHARS, "pattern": NOT_BLANK}
ANSWER = text(MAX_ANSWER_CHARS)


class BuildsQuery(Query):
    state: State = ABSENT
    name: str = Field(ABSENT, description="Only builds of the capability of this name.")


class BuildQuery(Query):
    transcript: bool = Field(True, description="False leaves out `rounds`.")


class BuildInput(OpenInput):
    """A new capability (`name`, `description`, `input_schema`), or a change to one (`capability` with `feedback`, or with
    the `execution` that failed)."""

    openapi = {
        "oneOf": [
            {"required": ["name", "description"]},
            {"required": ["capability", "feedback"]},
            {"required": ["capability", "execution"]},
        ]
    }
    name: Annotated[str, Checked(lambda value, field: clean_name(value), NEW_NAME)] | None = None
    description: (
        Annotated[str, Checked(lambda value, field: clean_description(value), DESCRIPTION)] | None
    ) = None
    input_schema: dict[str, Any] | None = None
    capability: Annotated[object, Checked(lambda value, field: value, NAME)] = Field(
        ABSENT, description="Its name or id."
    )
    feedback: Annotated[str, text(MAX_FEEDBACK_CHARS, allow_empty=True)] | None = None
    execution: Id | None = None


class BuildAnswerInput(OpenInput):
    """`text` answers a question, `decision` a request for hosts or secrets; without `id` the newest open one is meant."""

    openapi = {"anyOf": [{"required": ["text"]}, {"required": ["decision"]}]}
    id: Id | None = None
    text: Annotated[str, ANSWER] | None = None
    decision: (
        Annotated[
            bool,
            Checked(lambda value, field: is_yes(value), Literal["allow", "deny"]),
        ]
        | None
    ) = None


class BuildErrorOutput(Shape):
    code: str = Field(validation_alias="error_code")
    message: str = Field(validation_alias="reason")


class BuildOutput(Shape):
    """A build."""

    id: UUID
    name: str
    capability: UUID = Field(validation_alias="capability_id")
    kind: Kind
    state: State
    description: str
    request: str = Field(description="The user's words that led to it.")
    feedback: str
    error: BuildErrorOutput | None
    version: int | None
    hosts: list[str] = Field(description="Allowed while it was built.")
    secrets: list[str] = Field(description="Names of those that were allowed while it was built.")
    conversation: UUID | None = Field(validation_alias="conversation_id")
    turn: UUID | None = Field(validation_alias="turn_id")
    created_at: Moment
    started_at: Moment | None
    ended_at: Moment | None


class BuilderMessageOutput(Shape):
    """One message between builder and user."""

    id: UUID
    number: int = Field(description="Counts from 1 within the build; the `id` of its event.")
    direction: Direction
    type: MessageType
    payload: dict[str, Any]
    read: bool
    created_at: Moment


class BuildCallOutput(Shape):
    id: UUID
    name: str
    input: dict[str, Any]
    result: str
    is_error: bool
    state: str
    duration_ms: int


class BuildRoundOutput(Shape):
    round: int
    text: str
    tool_calls: list[BuildCallOutput] = Field(validation_alias="calls")


class BuildDetailOutput(BuildOutput):
    """A build with all that happened."""

    input_schema: dict[str, Any]
    messages: list[BuilderMessageOutput]
    questions: list[UUID] = Field(description="Messages that may be answered.")
    missing_secrets: list[str] = Field(description="Names of those it asks for that are not stored.")
    held_up: str = Field(description="Why it has not begun yet; empty where it has.")
    later: UUID | None = Field(description="The newest attempt at the same capability after it.")
    rounds: list[BuildRoundOutput]
    usage: dict[str, Any]
    duration_ms: int | None


class BuildRequestedOutput(Shape):
    """`active`: there is such a capability already, and nothing is built."""

    status: Literal["building", "active"]
    capability_id: UUID
    build_id: UUID | None


def build_seen(build: Build) -> Beside:
    """A build as a line of a list."""
    return Beside(build, error=build if build.error_code else None, secrets=sorted(build.secrets))


def build_opened(build: Build, *, brief: bool = False) -> Beside:
    """The build with its messages, what is asked, what it cost and, unless `brief`, the transcript."""
    usage, seconds = build_usage(build), build_seconds(build)
    return Beside(
        build_seen(build),
        messages=messages_after(build),
        questions=[message.pk for message in open_questions(build)],
        missing_secrets=secrets_wanted(build),
        held_up=held_up(build),
        later=build_later(build),
        rounds=[] if brief else transcript(build),
        usage=asdict(usage) | {"cost_usd": round(usage.cost_usd, 6)},
        duration_ms=None if seconds is None else round(seconds * 1000),
    )
