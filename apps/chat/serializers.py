"""Shapes of the chat's REST for the schema; input is checked by the services."""

from typing import Any

from rest_framework import serializers

from apps.agent.models import ToolCall
from apps.chat.models import Conversation, Role, TurnState
from apps.chat.services.ingest_input import SKIPPED_ROLES
from apps.chat.services.turns import MAX_MESSAGE_CHARS
from apps.core.rest_views import OpenInput, TextField


class ChatInput(serializers.Serializer[Any]):
    message = TextField(max_length=MAX_MESSAGE_CHARS)
    conversation = serializers.UUIDField(required=False, help_text="A new one where it is missing.")
    stream = serializers.BooleanField(default=False)
    client_id = serializers.CharField(
        required=False,
        max_length=64,
        help_text="Your name for the message: sent again, it makes no second turn.",
    )
    replaces = serializers.UUIDField(
        required=False,
        help_text="A message of the user: it and all after it are taken out of the conversation.",
    )
    use_memory = serializers.BooleanField(required=False, help_text="For a new conversation.")


class RetryInput(serializers.Serializer[Any]):
    stream = serializers.BooleanField(default=False)
    client_id = serializers.CharField(
        required=False, max_length=64, help_text="Your name for it: sent again, it makes no second turn."
    )


WHICH_CALL = "The tool call. Where it is missing the only one that waits; 409 where several do."


class AnswerInput(serializers.Serializer[Any]):
    text = TextField(max_length=20_000)
    id = serializers.UUIDField(required=False, help_text=WHICH_CALL)
    stream = serializers.BooleanField(default=False)


class ApproveInput(serializers.Serializer[Any]):
    decision = serializers.ChoiceField(["allow", "conversation", "always", "decline"])
    id = serializers.UUIDField(required=False, help_text=WHICH_CALL)
    stream = serializers.BooleanField(default=False)


class ToolCallOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    input = serializers.DictField()
    result = serializers.CharField()
    is_error = serializers.BooleanField()
    duration_ms = serializers.IntegerField()
    server = serializers.BooleanField(
        required=False,
        help_text="Set (and true) for a tool that the model's endpoint ran itself, else missing.",
    )


class MessageToolCallOutput(ToolCallOutput):
    state = serializers.ChoiceField(ToolCall.State.choices)
    waits_for = serializers.CharField(help_text="approval or answer while it waits for the user, else empty.")


class TurnOutput(serializers.Serializer[Any]):
    conversation = serializers.UUIDField()
    turn = serializers.UUIDField()
    state = serializers.ChoiceField(TurnState.choices)
    text = serializers.CharField()
    messages = serializers.ListField(child=serializers.UUIDField())
    tool_calls = ToolCallOutput(many=True)
    memories = serializers.ListField(child=serializers.DictField())
    pending_question = serializers.DictField(allow_null=True)
    pending_approval = serializers.DictField(allow_null=True)
    build_id = serializers.CharField(allow_null=True)
    notice = serializers.DictField(allow_null=True)
    usage = serializers.DictField()


class StopOutput(serializers.Serializer[Any]):
    conversation = serializers.UUIDField()
    stopping = serializers.IntegerField(help_text="How many turns were asked to stop.")


class ConversationsQuery(serializers.Serializer[Any]):
    q = serializers.CharField(
        default="", allow_blank=True, max_length=1_000, help_text="Only those whose title or text fits."
    )
    channel = serializers.CharField(
        default="", allow_blank=True, max_length=64, help_text="Only this channel; `chat` is Izzy's own."
    )


class ConversationInput(serializers.Serializer[Any]):
    title = serializers.CharField(required=False, allow_blank=True, max_length=200)
    use_memory = serializers.BooleanField(required=False)


class RenameInput(OpenInput):
    openapi = {"required": ["title"]}
    title = TextField(max_length=200)


class ConversationOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    title = serializers.CharField()
    channel = serializers.CharField()
    session = serializers.CharField()
    use_memory = serializers.BooleanField()
    messages = serializers.IntegerField(help_text="How many a reader sees.")
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class ConversationDetailOutput(ConversationOutput):
    summary = serializers.CharField(
        help_text="What stands in the prompt for the messages that were summed up; empty where none were."
    )


class MessageOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    role = serializers.ChoiceField(Role.choices)
    speaker = serializers.CharField()
    text = serializers.CharField()
    html = serializers.CharField()
    created_at = serializers.DateTimeField()
    turn = serializers.UUIDField(allow_null=True)
    state = serializers.ChoiceField(TurnState.choices)
    error = serializers.DictField(allow_null=True)
    tool_calls = MessageToolCallOutput(many=True)
    memories = serializers.ListField(child=serializers.DictField())


class IngestMessageInput(OpenInput):
    openapi = {"anyOf": [{"required": ["role"]}, {"required": ["speaker"]}]}
    content = TextField(max_length=100_000)
    role = serializers.ChoiceField(
        [*Role.values, *sorted(SKIPPED_ROLES)],
        required=False,
        help_text="This, or a speaker. Messages with the role system, developer, tool or function "
        "are counted as skipped and not kept.",
    )
    speaker = serializers.CharField(required=False, max_length=100)
    external_id = serializers.CharField(required=False, max_length=200)
    created_at = serializers.DateTimeField(required=False)


class IngestInput(serializers.Serializer[Any]):
    session = TextField(max_length=200)
    channel = serializers.CharField(required=False, max_length=64, default="api")
    messages = serializers.ListField(child=IngestMessageInput(), min_length=1, max_length=1_000)
    extract = serializers.BooleanField(
        default=True, help_text="Whether the messages are read for what is worth remembering."
    )


class IngestOutput(serializers.Serializer[Any]):
    conversation = serializers.UUIDField()
    added = serializers.IntegerField()
    repeated = serializers.IntegerField(help_text="Messages whose external_id had come before.")
    skipped = serializers.IntegerField(help_text="Messages that nobody said: system text and tool output.")
    ids = serializers.ListField(child=serializers.UUIDField(), help_text="Of the added messages, in order.")


def conversation_json(row: Conversation, messages: int) -> dict[str, Any]:
    """A conversation as REST shows it, with how many messages a reader sees (`messages_counted`)."""
    return {
        "id": str(row.id),
        "title": str(row),
        "channel": row.channel,
        "session": row.session,
        "use_memory": row.use_memory,
        "messages": messages,
        "created_at": row.created_at.isoformat(),
        "updated_at": row.updated_at.isoformat(),
    }
