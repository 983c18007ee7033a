"""Inputs of the chats' REST interface."""

from typing import Annotated, Any, Literal

from pydantic import Field

from apps.agent.services import MAX_ANSWER_CHARS
from apps.chat.services.conversations import MAX_TITLE
from apps.chat.services.ingest_input import (
    DEFAULT_CHANNEL,
    MAX_CHANNEL_CHARS,
    MAX_MESSAGES,
    MAX_SESSION_CHARS,
    IngestMessageInput,
    SkippedMessage,
    channel_checked,
    messages_listed,
    session_checked,
)
from apps.chat.services.turns import MAX_CLIENT_ID, MAX_MESSAGE_CHARS
from apps.core.decisions import is_yes
from apps.core.shapes import ABSENT, Checked, Id, NoteId, OpenInput, Query, Refused, text

WHICH_CALL = "The tool call. Where it is missing the only one that waits; 409 where several do."
DECISION = Literal["allow", "conversation", "always", "decline"]
LASTING = ("conversation", "always")
ANSWER = text(MAX_ANSWER_CHARS)
CLIENT_ID = text(MAX_CLIENT_ID, allow_empty=True)
SESSION = {"type": "string", "minLength": 1, "maxLength": MAX_SESSION_CHARS, "pattern": r"\S"}
CHANNEL = {"type": "string", "maxLength": MAX_CHANNEL_CHARS, "nullable": True}
MESSAGES = {
    "type": "array",
    "items": {"anyOf": [IngestMessageInput, SkippedMessage]},
    "minItems": 1,
    "maxItems": MAX_MESSAGES,
}


def _decision(value: object, *, field: str) -> object:
    """A yes or no, or a yes that lasts."""
    return value if value in LASTING else is_yes(value)


class RetryInput(OpenInput):
    stream: bool = False
    client_id: Annotated[str, CLIENT_ID] | None = Field(
        None, description="Your name for it: sent again, it makes no second turn."
    )


class ChatInput(RetryInput):
    message: Annotated[str, text(MAX_MESSAGE_CHARS)]
    conversation: Id | None = Field(None, description="A new one where it is missing.")
    client_id: Annotated[str, CLIENT_ID] | None = Field(
        None, description="Your name for the message: sent again, it makes no second turn."
    )
    replaces: Id | None = Field(
        None, description="A message of the user: it and all after it are taken out of the conversation."
    )
    use_memory: bool = Field(ABSENT, description="For a new conversation.")


class AnswerInput(OpenInput):
    text: Annotated[str, ANSWER]
    id: Id | None = Field(None, description=WHICH_CALL)
    stream: bool = False


class ApproveInput(OpenInput):
    decision: Annotated[object, Checked(_decision, DECISION), Refused("")]
    id: Id | None = Field(None, description=WHICH_CALL)
    stream: bool = False


class ConversationsQuery(Query):
    q: str = Field("", max_length=1_000, description="Only those whose title or text fits.")
    channel: str = Field("", max_length=64, description="Only this channel; `chat` is Izzy's own.")


class MessagesQuery(Query):
    before: NoteId = Field(ABSENT, description="A message's id: only what was said before it.")


class ConversationInput(OpenInput):
    title: Annotated[str, text(MAX_TITLE, allow_empty=True)] = ABSENT
    use_memory: bool = ABSENT


class RenameInput(OpenInput):
    openapi = {"required": ["title"]}
    title: Annotated[str, text(MAX_TITLE)]


class IngestInput(OpenInput):
    session: Annotated[str, Checked(lambda value, field: session_checked(value), SESSION)]
    channel: Annotated[str, Checked(lambda value, field: channel_checked(value), CHANNEL)] = DEFAULT_CHANNEL
    messages: Annotated[
        list[Any], Checked(lambda value, field: messages_listed(value), MESSAGES), Refused("")
    ]
    extract: bool = Field(True, description="Whether the messages are read for what is worth remembering.")
