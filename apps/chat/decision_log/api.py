"""REST: the decision log of a conversation."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.chat.decision_log.selectors import decision_log
from apps.chat.selectors.conversations import conversation_get
from apps.core.rest_views import UserView


class LogStepOutput(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    at = serializers.DateTimeField()
    round = serializers.IntegerField()
    tool = serializers.CharField()
    input = serializers.DictField()
    result = serializers.CharField()
    title = serializers.CharField(help_text="What the call is, in words.")
    target = serializers.CharField(help_text="What it is about: a file, a query, a note's text.")
    outcome = serializers.CharField()
    state = serializers.ChoiceField(["ok", "error", "not_run", "open"])
    error_code = serializers.CharField()
    is_recovery = serializers.BooleanField(help_text="Belongs to what made good an earlier error.")
    recovered_by = serializers.UUIDField(
        allow_null=True, help_text="The later call that made this error good."
    )
    duration_ms = serializers.IntegerField()
    lines = serializers.IntegerField(help_text="Written into a file or a note.")
    characters = serializers.IntegerField()


class LogTurnOutput(serializers.Serializer[Any]):
    turn = serializers.UUIDField()
    at = serializers.DateTimeField()
    said = serializers.CharField()
    state = serializers.CharField()
    replaced_by = serializers.UUIDField(
        allow_null=True, help_text="The turn that an edit or a retry put in its place."
    )
    error = serializers.DictField(allow_null=True)
    model = serializers.CharField()
    duration_ms = serializers.IntegerField(allow_null=True)
    steps = LogStepOutput(many=True)
    answer = serializers.CharField()
    outcome = serializers.ListField(child=serializers.CharField())
    written = serializers.DictField(child=serializers.IntegerField())
    memories = serializers.ListField(child=serializers.DictField())
    files = serializers.ListField(child=serializers.DictField())
    usage = serializers.DictField()


class LogOutput(serializers.Serializer[Any]):
    conversation = serializers.DictField()
    turns = LogTurnOutput(many=True)
    totals = serializers.DictField()


class LogView(UserView):
    """`GET /conversations/{id}/log/`: turn by turn what the model chose to do, oldest first."""

    @extend_schema(operation_id="conversations_log", responses=LogOutput)
    def get(self, request: Request, conversation_id: str) -> Response:
        """Read turn by turn what the model chose to do and what came of it, oldest first."""
        return Response(decision_log(conversation_get(self.user_id, conversation_id)))
