"""REST: talking with Izzy, and answering what a turn waits for."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from asgiref.sync import async_to_sync
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseBase
from drf_spectacular.utils import OpenApiResponse
from pydantic import Field, model_validator
from rest_framework.request import Request

from apps.accounts.credentials import event_stream, follow_check, following, server_sent
from apps.agent.models import ToolCall
from apps.agent.selectors import ToolCallOutput
from apps.agent.services import MAX_ANSWER_CHARS
from apps.agent.turn.events import LAST_EVENTS
from apps.chat.attachments.services import MAX_PER_MESSAGE
from apps.chat.conversations.messages import versions_of
from apps.chat.conversations.selectors import conversation_get
from apps.chat.models import OPEN_STATES, Conversation, Role, Turn, TurnEvent, TurnStatus
from apps.chat.stream.events import events_of
from apps.chat.stream.snapshot import Start, asks_open, under_way
from apps.chat.turns import services
from apps.chat.turns.branches import branch_choose
from apps.chat.turns.preparing import turn_with_conversation
from apps.chat.turns.scheduler import schedule_soon, scheduler
from apps.chat.turns.services import MAX_CLIENT_ID, MAX_MESSAGE_CHARS
from apps.core.db.prepared import prepared
from apps.core.db.writing import one_view
from apps.core.errors import Conflict, InvalidInput, IzzyError, NotFound
from apps.core.http.rest import UserView, event_stream_of, operation
from apps.core.http.shapes import ABSENT, Checked, Id, OpenInput, Refused, Shape, text
from apps.core.text import is_yes

WHICH_CALL = "The tool call. Where it is missing the only one that waits; 409 where several do."
DECISION = Literal["allow", "conversation", "always", "decline"]
LASTING = ("conversation", "always")
ANSWER = text(MAX_ANSWER_CHARS)
CLIENT_ID = text(MAX_CLIENT_ID, allow_empty=True)
KEEP_ALIVE_SECONDS = 15.0
FAILED_STATUS = {TurnStatus.FAILED: 502, TurnStatus.INTERRUPTED: 503}
EVENTS = event_stream_of("TurnEvent", "With `stream`: the turn's events as server-sent events.")
RESPONSES = {
    (200, "text/event-stream"): EVENTS,
    502: OpenApiResponse(
        description="The model failed; `extra` has the conversation, the turn and the text so far."
    ),
    503: OpenApiResponse(description="Izzy was interrupted while answering; `extra` as with 502."),
}


def _decision(value: object, *, field: str) -> object:
    """A yes or no, or a yes that lasts."""
    return value if value in LASTING else is_yes(value)


class RetryInput(OpenInput):
    stream: bool = False
    client_id: Annotated[str, CLIENT_ID] | None = Field(
        None, description="Your name for it: sent again, it makes no second turn."
    )
    replaces: Id | None = Field(
        None, description="The message that is meant; 409 where it is not the newest any more."
    )


class ChatInput(RetryInput):
    message: Annotated[str, text(MAX_MESSAGE_CHARS, allow_empty=True)] = Field(
        description="May be empty where something is attached."
    )
    conversation: Id | None = Field(None, description="A new one where it is missing.")
    client_id: Annotated[str, CLIENT_ID] | None = Field(
        None, description="Your name for the message: sent again, it makes no second turn."
    )
    replaces: Id | None = Field(
        None,
        description="A message of the user: the new one takes its place and that of all after it, which stay as a version.",
    )
    use_memory: bool = Field(ABSENT, description="For a new conversation.")
    attachments: Annotated[list[Id], Field(max_length=MAX_PER_MESSAGE)] | None = Field(
        None,
        description="Files beside it, by the ids that `attachments/` gave. Where it is missing those of the replaced message.",
    )

    spoken: bool = Field(
        False, description="The user said it aloud: they may prefer a short answer, made for listening."
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.message and not self.attachments:
            raise InvalidInput("message must not be empty.", code="empty_text", field="message")
        return self


class AnswerInput(OpenInput):
    text: Annotated[str, ANSWER]
    id: Id | None = Field(None, description=WHICH_CALL)
    stream: bool = False


class ApproveInput(OpenInput):
    decision: Annotated[object, Checked(_decision, DECISION), Refused("")]
    id: Id | None = Field(None, description=WHICH_CALL)
    stream: bool = False


class BranchInput(OpenInput):
    turn: Id = Field(description="One of a message's `versions`.")


class BranchOutput(Shape):
    conversation: UUID
    turn: UUID
    versions: list[UUID]


class TurnOutput(Shape):
    conversation: UUID
    turn: UUID
    state: TurnStatus
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


async def turn_frames(
    conversation_id: UUID, turn_id: UUID, after: int = 0
) -> AsyncGenerator[dict[str, Any] | None, None]:
    """The turn's events above `after` up to the one that ends its stream; None now and then while nothing happens. Of a turn that
    has gone on after it waited they begin there. Has the turn run, too; leaving early does not stop it."""
    runner, watcher = scheduler(), None
    try:
        while True:
            if (
                watcher is None or watcher.lagged
            ):  # What a reader that lags has missed stands in the rows.
                if watcher is not None:
                    runner.hub.leave(watcher)
                watcher = runner.hub.join(conversation_id, html=False)
                await runner.flush(conversation_id)
                start = await runner.hub.begin(watcher, partial(_start, turn_id, after))
                if start is None:
                    return
                if not any(frame["type"] in LAST_EVENTS for frame in start.frames):
                    await runner.schedule(conversation_id)
                    if start.ended:
                        return
            try:
                async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                    frame = await watcher.next()
            except TimeoutError:
                yield None
                continue
            if frame.get("turn") not in {None, str(turn_id)}:
                continue
            after = max(after, frame.get("seq", 0))
            yield frame
            if frame["type"] in LAST_EVENTS:
                return
    finally:
        if watcher is not None:
            runner.hub.leave(watcher)


@one_view()
def _start(turn_id: UUID, after: int) -> Start | None:
    """The turn's stored events, and whether it has ended; None where its conversation was deleted meanwhile."""
    turn = turn_with_conversation.first(turn_id)
    if turn is None:
        return None
    conversation = turn.conversation
    frames = [event.frame(conversation.id) for event in events_of(_events(turn_id, after), after)]
    ends = [place for place, frame in enumerate(frames, 1) if frame["type"] in LAST_EVENTS]
    if turn.state not in {TurnStatus.QUEUED, TurnStatus.RUNNING}:
        del ends[-1:]  # with it the newest stream ends
    frames, stored = frames[ends[-1] if ends else 0 :], conversation.stored_seq
    ended = turn.state not in OPEN_STATES
    return Start(frames, max(after, stored), stored, under_way(conversation)[1], ended)


@prepared
def _turn_of(user_id: UUID, turn_id: UUID) -> QuerySet[Turn]:
    return Turn.objects.owned_by(user_id).filter(id=turn_id)


@prepared
def _events(turn_id: UUID, after: int) -> QuerySet[TurnEvent]:
    return TurnEvent.objects.filter(turn_id=turn_id, last_seq__gt=after).order_by("seq")


async def turn_stream(
    conversation_id: UUID, turn_id: UUID, after: int = 0
) -> AsyncGenerator[bytes, None]:
    """The same as server-sent events: `event` repeats the type, `id` is the sequence number."""
    async with aclosing(turn_frames(conversation_id, turn_id, after)) as frames:
        async for frame in frames:
            yield b": still here\n\n" if frame is None else server_sent(frame, frame.get("seq"))


async def turn_end(conversation_id: UUID, turn_id: UUID, after: int = 0) -> dict[str, Any] | None:
    """The event that ends the turn's stream; None when the turn ended long ago and its events are gone."""
    async with aclosing(turn_frames(conversation_id, turn_id, after)) as frames:
        async for frame in frames:
            if frame is not None and frame["type"] in LAST_EVENTS:
                return frame
    return None


class TurnView(UserView):
    """Base of the views that follow a turn to its end, or to where it waits for the user."""

    throttle_scope = "chat"

    def follow(
        self, conversation_id: UUID, turn_id: UUID, *, stream: bool, after: int = 0
    ) -> HttpResponseBase | dict[str, Any]:
        """The events of the turn, or its end."""
        if not stream:
            with following(self.user_id):
                return self._whole(turn_id, async_to_sync(turn_end)(conversation_id, turn_id, after))
        return event_stream(self.request, turn_stream(conversation_id, turn_id, after))

    def _whole(self, turn_id: UUID, last: dict[str, Any] | None) -> dict[str, Any]:
        """The end of the turn, as `TurnOutput` has it. Raises what it failed with."""
        turn = _turn_of.first(self.user_id, turn_id)
        if turn is None:
            raise NotFound("The conversation was deleted meanwhile.")
        event = last or {}
        if (text := event.get("text")) is None:
            said = turn.messages.filter(role=Role.ASSISTANT).exclude(text="")
            text = "\n\n".join(said.values_list("text", flat=True))
        if (status := FAILED_STATUS.get(TurnStatus(turn.state))) is not None:
            where = {"conversation": str(turn.conversation_id), "turn": str(turn.id)}
            failure = IzzyError(turn.error_message, code=turn.error_code, **where, text=text)
            failure.status = status
            raise failure
        absent = dict.fromkeys(("pending_question", "pending_approval", "build_id", "notice"))
        # What a turn asked that does not wait is decided, or was left when its user went on.
        if turn.state != TurnStatus.WAITING:
            event = event | {"pending_question": None, "pending_approval": None}
        here = {"conversation": turn.conversation_id, "turn": turn.id, "state": turn.state}
        nothing = {"messages": [], "tool_calls": [], "usage": turn.usage, **absent}
        return {**nothing, **event, **here, "text": text, "memories": turn.memories}


class ChatView(TurnView):
    """`POST /chat/`: a message and the answer to it."""

    @operation("chat", body=ChatInput, answer=TurnOutput, described={"responses": RESPONSES})
    def post(self, request: Request) -> HttpResponseBase | dict[str, Any]:
        """Send a message and get the answer, as a whole or as server-sent events."""
        body = self.body(ChatInput)
        follow_check(self.user_id)
        sent = services.message_send(
            user_id=self.user_id,
            text=body.message,
            conversation=body.conversation,
            client_id=body.client_id,
            replaces=body.replaces,
            use_memory=body.use_memory,
            attachments=body.attachments,
            spoken=body.spoken,
        )
        return self.follow(sent.conversation_id, sent.turn_id, stream=body.stream)


class RetryView(TurnView):
    """`POST /conversations/{id}/retry/`: the newest message again, in place of its answer."""

    @operation(
        "conversation_retry", body=RetryInput, answer=TurnOutput, described={"responses": RESPONSES}
    )
    def post(self, request: Request, conversation_id: str) -> HttpResponseBase | dict[str, Any]:
        """Answer the newest message once more, in place of the answer it has."""
        body = self.body(RetryInput)
        follow_check(self.user_id)
        sent = services.turn_retry(
            user_id=self.user_id,
            conversation_id=conversation_id,
            client_id=body.client_id,
            replaces=body.replaces,
        )
        return self.follow(sent.conversation_id, sent.turn_id, stream=body.stream)


class AnswerView(TurnView):
    """`POST /conversations/{id}/answer/`: the answer to a question; then the turn goes on."""

    @operation(
        "conversation_answer", body=AnswerInput, answer=TurnOutput, described={"responses": RESPONSES}
    )
    def post(self, request: Request, conversation_id: str) -> HttpResponseBase | dict[str, Any]:
        """Answer a question that a turn waits with. The turn then goes on."""
        conversation = conversation_get(self.user_id, conversation_id)
        body = self.body(AnswerInput)
        follow_check(self.user_id)
        call = self.waiting(conversation, body.id, ToolCall.WaitsFor.ANSWER)
        services.question_answer(user_id=self.user_id, tool_call_id=call.id, text=body.text)
        return self.resume(call, conversation.stored_seq, stream=body.stream)

    def waiting(self, conversation: Conversation, call_id: UUID | None, kind: str) -> ToolCall:
        """The call that waits in this conversation: the only one, where no id is given."""
        calls = ToolCall.objects.owned_by(self.user_id).filter(conversation_id=conversation.id)
        if call_id is not None:
            if (call := calls.filter(id=call_id).first()) is None:
                raise NotFound("There is no tool call with this id in this conversation.")
            return call
        undecided = calls.filter(waits_for=kind, state=ToolCall.State.WAITING, decision="")
        waiting = list(undecided.order_by("round", "position"))
        if not waiting:
            raise Conflict("Nothing waits for this.", code="not_waiting")
        if len(waiting) > 1:  # nobody answers for one what was meant for another
            ids = [str(call.id) for call in waiting]
            raise Conflict(
                "Several calls wait. Say by its id which one is meant.", code="several_waiting", ids=ids
            )
        return waiting[0]

    def resume(self, call: ToolCall, seq: int, *, stream: bool) -> HttpResponseBase | dict[str, Any]:
        if call.conversation_id is None or call.turn_id is None:
            raise NotFound
        turn = _turn_of.first(self.user_id, call.turn_id)
        asked = asks_open(turn) if turn is not None else []
        if not asked:
            return self.follow(call.conversation_id, call.turn_id, stream=stream, after=seq)
        # What the turn still asks after this decision, as a `response` says it.
        pending: dict[str, Any] = {}
        for event in reversed(asked):
            name = "pending_question" if event["type"] == "question" else "pending_approval"
            pending[name] = {key: value for key, value in event.items() if key != "type"}
        whole = self._whole(call.turn_id, pending)
        if not stream:
            return whole
        frame = TurnOutput.dump(whole)
        del frame["state"], frame["memories"]
        content = server_sent({"type": "response", "seq": seq, **frame}, seq)
        return HttpResponse(
            content, content_type="text/event-stream", headers={"Cache-Control": "no-cache"}
        )


class ApproveView(AnswerView):
    """`POST /conversations/{id}/approve/`: yes or no to a tool call; then the turn goes on."""

    @operation(
        "conversation_approve", body=ApproveInput, answer=TurnOutput, described={"responses": RESPONSES}
    )
    def post(self, request: Request, conversation_id: str) -> HttpResponseBase | dict[str, Any]:
        """Allow or decline a tool call that a turn waits with. The turn then goes on."""
        conversation = conversation_get(self.user_id, conversation_id)
        body = self.body(ApproveInput)
        follow_check(self.user_id)
        call = self.waiting(conversation, body.id, ToolCall.WaitsFor.APPROVAL)
        services.approval_decide(user_id=self.user_id, tool_call_id=call.id, decision=body.decision)
        return self.resume(call, conversation.stored_seq, stream=body.stream)


class BranchView(UserView):
    """`POST /conversations/{id}/branch/`: another version of a message, with what followed it."""

    @operation("conversation_branch", body=BranchInput, answer=BranchOutput)
    def post(self, request: Request, conversation_id: str) -> dict[str, Any]:
        """Bring back a version that an edit or a retry replaced, with what followed it. 409 while a turn runs."""
        conversation = conversation_get(self.user_id, conversation_id)
        turn_id = self.body(BranchInput).turn
        turn = branch_choose(user_id=self.user_id, conversation_id=conversation.id, turn_id=turn_id)
        schedule_soon(conversation.id)
        versions = versions_of([turn])[turn.id]
        return {"conversation": conversation.id, "turn": turn.id, "versions": versions}


class StopView(UserView):
    """`POST /conversations/{id}/stop/`: stops the running turn."""

    @operation("conversation_stop", answer=StopOutput, status=202)
    def post(self, request: Request, conversation_id: str) -> dict[str, Any]:
        """Stop the running turn. What was said so far stays."""
        conversation = conversation_get(self.user_id, conversation_id)
        asked = services.turn_stop(user_id=self.user_id, conversation_id=conversation.id)
        schedule_soon(conversation.id)
        return {"conversation": conversation.id, "stopping": asked}
