"""What the REST interface of builds takes and gives, described to OpenAPI."""

from typing import Any

from rest_framework import serializers

from apps.core.rest_views import OpenInput, TextField

from .models import Direction, Kind, MessageType, State
from .services.requesting import MAX_FEEDBACK_CHARS
from .services.talking import MAX_ANSWER_CHARS


class BuildsQuery(serializers.Serializer[Any]):
    state = serializers.ChoiceField(State.choices, required=False)
    name = serializers.CharField(
        default="", allow_blank=True, help_text="Only builds of the capability of this name."
    )


class BuildQuery(serializers.Serializer[Any]):
    transcript = serializers.BooleanField(default=True, help_text="False leaves out `rounds`.")


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
    name = serializers.CharField(required=False)
    description = TextField(required=False)
    input_schema = serializers.DictField(required=False)
    capability = serializers.CharField(required=False, help_text="Its name or id.")
    feedback = serializers.CharField(required=False, max_length=MAX_FEEDBACK_CHARS)
    execution = serializers.UUIDField(required=False)


class BuildAnswerInput(OpenInput):
    """`text` answers a question, `decision` a wish for hosts or secrets; without `id` the newest open one is meant."""

    openapi = {"anyOf": [{"required": ["text"]}, {"required": ["decision"]}]}
    id = serializers.UUIDField(required=False)
    text = TextField(required=False, max_length=MAX_ANSWER_CHARS)
    decision = serializers.ChoiceField(["allow", "deny"], required=False)


class BuildErrorOutput(serializers.Serializer[Any]):
    code = serializers.CharField()
    message = serializers.CharField()


class BuildOutput(serializers.Serializer[Any]):
    """A build."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    capability = serializers.UUIDField()
    kind = serializers.ChoiceField(Kind.choices)
    state = serializers.ChoiceField(State.choices)
    description = serializers.CharField()
    request = serializers.CharField(help_text="The user's words that led to it.")
    feedback = serializers.CharField()
    error = BuildErrorOutput(allow_null=True)
    version = serializers.IntegerField(allow_null=True)
    hosts = serializers.ListField(child=serializers.CharField(), help_text="Allowed while it was built.")
    secrets = serializers.ListField(
        child=serializers.CharField(), help_text="Names of those that were allowed while it was built."
    )
    conversation = serializers.UUIDField(allow_null=True)
    turn = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class BuilderMessageOutput(serializers.Serializer[Any]):
    """One message between builder and user."""

    id = serializers.UUIDField()
    number = serializers.IntegerField(help_text="Counts from 1 within the build; the `id` of its event.")
    direction = serializers.ChoiceField(Direction.choices)
    type = serializers.ChoiceField(MessageType.choices)
    payload = serializers.DictField()
    read = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class BuildCallOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    input = serializers.DictField()
    result = serializers.CharField()
    is_error = serializers.BooleanField()
    state = serializers.CharField()
    duration_ms = serializers.IntegerField()


class BuildRoundOutput(serializers.Serializer[Any]):
    round = serializers.IntegerField()
    text = serializers.CharField()
    tool_calls = BuildCallOutput(many=True)


class BuildDetailOutput(BuildOutput):
    """A build with all that happened."""

    input_schema = serializers.DictField()
    messages = BuilderMessageOutput(many=True)
    questions = serializers.ListField(
        child=serializers.UUIDField(), help_text="Messages that may be answered."
    )
    missing_secrets = serializers.ListField(
        child=serializers.CharField(), help_text="Names of those it asks for that are not stored."
    )
    held_up = serializers.CharField(help_text="Why it has not begun yet; empty where it has.")
    later = serializers.UUIDField(
        allow_null=True, help_text="The newest attempt at the same capability after it."
    )
    rounds = BuildRoundOutput(many=True)
    usage = serializers.DictField()
    duration_ms = serializers.IntegerField(allow_null=True)


class BuildRequestedOutput(serializers.Serializer[Any]):
    """`active`: there is such a capability already, and nothing is built."""

    status = serializers.ChoiceField(["building", "active"])
    capability_id = serializers.UUIDField()
    build_id = serializers.UUIDField(allow_null=True)
