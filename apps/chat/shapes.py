"""Outputs of the chats' REST interface; events, snapshots and pages show messages by the same classes."""

from typing import Any
from uuid import UUID

from pydantic import Field

from apps.agent.models import ToolCall
from apps.agent.shapes import ToolCallOutput
from apps.chat.models import Role, TurnState
from apps.core.shapes import Moment, Shape


class MessageToolCallOutput(ToolCallOutput):
    state: ToolCall.State
    waits_for: str = Field(description="approval or answer while it waits for the user, else empty.")
    covered: str = Field(
        "",
        exclude_if=lambda value: not value,
        description="The lasting yes under which it ran, conversation or always; else missing.",
    )


class TurnOutput(Shape):
    conversation: UUID
    turn: UUID
    state: TurnState
    text: str
    messages: list[UUID]
    tool_calls: list[ToolCallOutput]
    memories: list[dict[str, Any]]
    pending_question: dict[str, Any] | None
    pending_approval: dict[str, Any] | None
    build_id: str | None
    notice: dict[str, Any] | None
    usage: dict[str, Any]


class StopOutput(Shape):
    conversation: UUID
    stopping: int = Field(description="How many turns were asked to stop.")


class ConversationOutput(Shape):
    id: UUID
    title: str
    channel: str
    session: str
    use_memory: bool
    messages: int = Field(description="How many a reader sees.")
    created_at: Moment
    updated_at: Moment


class ConversationDetailOutput(ConversationOutput):
    summary: str = Field(
        description="What stands in the prompt for the messages that were summed up; empty where none were."
    )


class MessageOutput(Shape):
    id: UUID
    role: Role
    speaker: str
    text: str
    html: str
    created_at: Moment
    turn: UUID | None
    state: TurnState
    error: dict[str, Any] | None
    tool_calls: list[MessageToolCallOutput]
    memories: list[dict[str, Any]]


class IngestOutput(Shape):
    conversation: UUID
    added: int
    repeated: int = Field(description="Messages whose external_id had come before.")
    skipped: int = Field(description="Messages that nobody said: system text and tool output.")
    ids: list[UUID] = Field(description="Of the added messages, in order.")
