"""REST: talking with Izzy, and answering what a turn waits for."""

from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseBase
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.credentials import event_stream, follow_check, following
from apps.agent.models import ToolCall
from apps.agent.selectors import toolcalls_undecided
from apps.chat import services
from apps.chat.inputs import body_of, flag
from apps.chat.live.follow import turn_end, turn_stream
from apps.chat.models import Conversation, Turn, TurnState
from apps.chat.runner.registry import kick_soon
from apps.chat.selectors.conversations import conversation_get
from apps.chat.serializers import AnswerInput, ApproveInput, ChatInput, RetryInput, StopOutput, TurnOutput
from apps.chat.services.turns import MAX_MESSAGE_CHARS
from apps.core.errors import Conflict, NotFound
from apps.core.ids import parse_id
from apps.core.rest_views import UserView
from apps.core.server_sent import server_sent
from apps.core.text import clean_text

FAILED_STATUS = {TurnState.FAILED: 502, TurnState.INTERRUPTED: 503}

EVENTS = OpenApiResponse(
    {"$ref": "#/components/schemas/TurnEvent"},
    "With `stream`: the turn's events as server-sent events, one JSON object each, whose type `event:` repeats.",
)
RESPONSES = {
    200: TurnOutput,
    (200, "text/event-stream"): EVENTS,
    502: OpenApiResponse(
        description="The model failed; `extra` has the conversation, the turn and the text so far."
    ),
    503: OpenApiResponse(description="Izzy was interrupted while answering; `extra` as with 502."),
}


class TurnView(UserView):
    """What the views have in common that follow a turn to its end, or to where it waits for the user."""

    throttle_scope = "chat"

    def streamed(self, body: dict[str, Any]) -> bool:
        """Whether the body asks for events. Raises Throttled where too many answers are waited for already."""
        follow_check(self.user_id)
        return bool(flag(body, "stream", False))

    def follow(
        self, conversation_id: UUID, turn_id: UUID, *, stream: bool, after: int = 0
    ) -> HttpResponseBase:
        if not stream:
            with following(self.user_id):
                return self._whole(turn_id, async_to_sync(turn_end)(conversation_id, turn_id, after))
        return event_stream(self.request, turn_stream(conversation_id, turn_id, after))

    def _whole(self, turn_id: UUID, last: dict[str, Any] | None) -> Response:
        """The end of the turn as one JSON object."""
        turn = Turn.objects.for_user(self.user_id).filter(id=turn_id).first()
        if turn is None:
            raise NotFound("The conversation was deleted meanwhile.")
        event = last or {}
        where = {"conversation": str(turn.conversation_id), "turn": str(turn.id)}
        said = [
            text for text in turn.messages.filter(role="assistant").values_list("text", flat=True) if text
        ]
        text = event.get("text", "\n\n".join(said))
        if (status := FAILED_STATUS.get(TurnState(turn.state))) is not None:
            error = {"code": turn.error_code, "message": turn.error_message}
            return Response({**error, "extra": {**where, "text": text}}, status=status)
        return Response(
            {
                **where,
                "state": turn.state,
                "text": text,
                "messages": event.get("messages", []),
                "tool_calls": event.get("tool_calls", []),
                "memories": turn.memories,
                "pending_question": event.get("pending_question"),
                "pending_approval": event.get("pending_approval"),
                "build_id": event.get("build_id"),
                "notice": event.get("notice"),
                "usage": event.get("usage", turn.usage),
            }
        )


class ChatView(TurnView):
    """`POST /chat/`: a message and the answer to it."""

    @extend_schema(request=ChatInput, responses=RESPONSES, operation_id="chat")
    def post(self, request: Request) -> HttpResponseBase:
        """Send a message and get the answer, as a whole or as server-sent events."""
        body = body_of(request)
        message = services.UserMessage(
            text=clean_text(body.get("message"), field="message", max_chars=MAX_MESSAGE_CHARS),
            conversation=body.get("conversation"),
            client_id=body.get("client_id"),
            replaces=body.get("replaces"),
            use_memory=flag(body, "use_memory", None),
        )
        stream = self.streamed(body)
        sent = services.message_send(user_id=self.user_id, message=message)
        return self.follow(sent.conversation_id, sent.turn_id, stream=stream)


class RetryView(TurnView):
    """`POST /conversations/{id}/retry/`: the newest message again, in place of its answer."""

    @extend_schema(request=RetryInput, responses=RESPONSES, operation_id="conversation_retry")
    def post(self, request: Request, conversation_id: str) -> HttpResponseBase:
        """Answer the newest message once more, in place of the answer it has."""
        body = body_of(request)
        stream = self.streamed(body)
        sent = services.turn_retry(
            user_id=self.user_id, conversation_id=conversation_id, client_id=body.get("client_id")
        )
        return self.follow(sent.conversation_id, sent.turn_id, stream=stream)


class AnswerView(TurnView):
    """`POST /conversations/{id}/answer/`: the answer to a question; then the turn goes on."""

    @extend_schema(request=AnswerInput, responses=RESPONSES, operation_id="conversation_answer")
    def post(self, request: Request, conversation_id: str) -> HttpResponseBase:
        """Answer a question that a turn waits with. The turn then goes on."""
        body = body_of(request)
        stream = self.streamed(body)
        call, seq = self.waiting(conversation_id, body.get("id"), ToolCall.WaitsFor.ANSWER)
        services.question_answer(user_id=self.user_id, tool_call_id=call.id, text=body.get("text"))
        return self.resume(call, seq, stream=stream)

    def waiting(self, conversation_id: str, call_id: object, kind: str) -> tuple[ToolCall, int]:
        """The call that waits in this conversation (the only one, where no id is given) and the newest event."""
        conversation = conversation_get(self.user_id, conversation_id)
        calls = ToolCall.objects.owned_by(self.user_id).filter(conversation_id=conversation.id)
        if call_id is None:
            return _only_one(calls.filter(waits_for=kind)), conversation.stored_seq
        call = calls.filter(id=parse_id(call_id)).first()
        if call is None:
            raise NotFound("There is no tool call with this id in this conversation.")
        return call, conversation.stored_seq

    def resume(self, call: ToolCall, seq: int, *, stream: bool) -> HttpResponseBase:
        if call.conversation_id is None or call.turn_id is None:
            raise NotFound
        left = toolcalls_undecided(user_id=self.user_id, turn_id=call.turn_id)
        if left:
            return self._still_waiting(call.turn_id, {str(each.id) for each in left}, seq, stream=stream)
        return self.follow(call.conversation_id, call.turn_id, stream=stream, after=seq)

    def _still_waiting(self, turn_id: UUID, left: set[str], seq: int, *, stream: bool) -> HttpResponseBase:
        """What the turn still asks, where it asked for more than was decided: as a `response` says it."""
        rows = Turn.objects.for_user(self.user_id).filter(id=turn_id).values_list("waiting_for", flat=True)
        asked = [event for waiting_for in rows for event in waiting_for if event["id"] in left]
        pending: dict[str, Any] = {"pending_question": None, "pending_approval": None}
        for event in reversed(asked):
            name = "pending_question" if event["type"] == "question" else "pending_approval"
            pending[name] = {key: value for key, value in event.items() if key != "type"}
        whole = self._whole(turn_id, pending)
        if not stream or whole.status_code != 200:
            return whole
        frame = {key: value for key, value in whole.data.items() if key not in {"state", "memories"}}
        content = server_sent({"type": "response", "seq": seq, **frame}, seq)
        return HttpResponse(content, content_type="text/event-stream", headers={"Cache-Control": "no-cache"})


def _only_one(calls: QuerySet[ToolCall]) -> ToolCall:
    """The call that waits, where no other does: nobody answers for one what was meant for another."""
    waiting = list(calls.filter(state=ToolCall.State.WAITING, decision="").order_by("round", "position"))
    if not waiting:
        raise Conflict("Nothing waits for this.", code="not_waiting")
    if len(waiting) > 1:
        ids = [str(call.id) for call in waiting]
        raise Conflict(
            "Several calls wait. Say by its id which one is meant.", code="several_waiting", ids=ids
        )
    return waiting[0]


class ApproveView(AnswerView):
    """`POST /conversations/{id}/approve/`: yes or no to a tool call; then the turn goes on."""

    @extend_schema(request=ApproveInput, responses=RESPONSES, operation_id="conversation_approve")
    def post(self, request: Request, conversation_id: str) -> HttpResponseBase:
        """Allow or decline a tool call that a turn waits with. The turn then goes on."""
        body = body_of(request)
        stream = self.streamed(body)
        call, seq = self.waiting(conversation_id, body.get("id"), ToolCall.WaitsFor.APPROVAL)
        services.approval_decide(user_id=self.user_id, tool_call_id=call.id, decision=body.get("decision"))
        return self.resume(call, seq, stream=stream)


class StopView(UserView):
    """`POST /conversations/{id}/stop/`: stops the running turn."""

    @extend_schema(request=None, responses={202: StopOutput}, operation_id="conversation_stop")
    def post(self, request: Request, conversation_id: str) -> Response:
        """Stop the running turn. What was said so far stays."""
        conversation: Conversation = conversation_get(self.user_id, conversation_id)
        asked = services.turn_stop(user_id=self.user_id, conversation_id=conversation.id)
        kick_soon(conversation.id)
        return Response({"conversation": str(conversation.id), "stopping": asked}, status=202)
