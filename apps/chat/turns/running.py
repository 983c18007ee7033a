"""One turn: from its rows, made ready in one database hop (memories, tools and history), through the agent's loop to its outcome."""

import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import Preferences
from apps.accounts.selectors import preferences_for
from apps.agent.model.client import OFFLINE, Usage, current_endpoint, model_for
from apps.agent.model.messages import canonical_json
from apps.agent.model.sdk import default_client
from apps.agent.selectors import turn_tool_calls, turn_usage
from apps.agent.tools.base import find_tool
from apps.agent.turn.events import (
    ApprovalRequested,
    Event,
    MemoryContext,
    Question,
    Response,
    TextDelta,
    TurnFailed,
    TurnResumed,
    TurnStarted,
)
from apps.agent.turn.executor import ToolExecutor, executor_for
from apps.agent.turn.loop import LoopState, TurnStore, run_turn
from apps.chat.conversations.selectors import taint_of
from apps.chat.models import Message, MessageKind, Role, Turn, TurnStatus
from apps.chat.prompt import (
    capability_hints,
    context_block,
    conversation_tools,
    history,
    recent_texts,
    system_blocks,
)
from apps.chat.summary.selectors import Need, current_budget, sent_turns, turns_shown
from apps.chat.summary.services import conversation_compact
from apps.chat.turns.queue import opening_message
from apps.chat.turns.store import TurnOutcome, stopped
from apps.core.db.pool import in_db
from apps.core.ids import parse_id
from apps.memory.notes.changes import cycle_advance
from apps.memory.recall.injection import Surfaced, still_shown, surface

logger = logging.getLogger(__name__)
TOO_LONG = "context_too_long"
INTERNAL_ERROR = TurnFailed("internal_error", "Something went wrong inside Izzy. The server's log says what.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A turn ready to run, and the message that it answers. With `too_long` its conversation has to be summed up before it is
    sent; then `turn_reload` gives its state."""

    turn: Turn
    message: Message
    state: LoopState
    too_long: bool


def turn_prepare(turn_id: UUID) -> Prepared:
    """Reads all that the turn needs; a fresh one also advances the decay cycle and gets its context block.

    The block goes in front of the user's words and is stored with them, so that later requests repeat it.
    """
    turn = Turn.objects.unscoped().select_related("conversation").get(id=turn_id)
    preferences = preferences_for(turn.user_id)
    message = opening_message(turn)
    if turn.attempt == 1:
        surfaced = Surfaced(text="", tokens=0, items=())
        if not turn.by_izzy:
            cycle_advance(user_id=turn.user_id)
        if turn.conversation.use_memory and not turn.by_izzy:
            surfaced = _surface(turn)
        with transaction.atomic():
            block = context_block(
                now=timezone.now(),
                time_zone=preferences.time_zone,
                memories=surfaced.text,
                capabilities=capability_hints(turn.conversation, preferences, message.text),
            )
            message.blocks = canonical_json([block, *json.loads(message.blocks)])
            message.save(update_fields=["blocks"])
            turn.memories = [item.to_json() for item in surfaced.items]
            turn.memory_tokens = surfaced.tokens
            turn.save(update_fields=["memories", "memory_tokens"])
    return Prepared(
        turn=turn,
        message=message,
        state=_loop_state(turn, preferences),
        too_long=sum(each.tokens for each in sent_turns(turn.conversation)) > current_budget().limit,
    )


def turn_reload(turn_id: UUID) -> LoopState:
    """The turn as its rows say, after its conversation was summed up."""
    turn = Turn.objects.unscoped().select_related("conversation").get(id=turn_id)
    return _loop_state(turn, preferences_for(turn.user_id))


def _surface(turn: Turn) -> Surfaced:
    """The notes worth bringing up that the model does not have before it already, as they read now."""
    texts = recent_texts(turn.conversation_id)
    items = [item for shown in turns_shown(turn.conversation) for item in shown.memories]
    known = still_shown(turn.user_id, items) | {parse_id(item["id"]) for item in items if "source" in item}
    return surface(
        turn.user_id,
        texts,
        exclude_ids=known,
        conversation_id=turn.conversation_id,
        now=timezone.now(),
    )


def _loop_state(turn: Turn, preferences: Preferences) -> LoopState:
    conversation = turn.conversation
    before = conversation.tools
    tools = conversation_tools(conversation, preferences.toolsets)
    if conversation.tools != before:
        conversation.save(update_fields=["tools"])
    model = turn.model
    if not turn.said and model in {"", OFFLINE}:  # what was begun offline may go on with a model
        model = preferences.model or model_for("chat")
        turn.model = current_endpoint().answering(model)
        turn.save(update_fields=["model"])
    newest = turn.messages.filter(role=Role.ASSISTANT, kind=MessageKind.TEXT).order_by("round").last()
    return LoopState(
        user_id=turn.user_id,
        conversation_id=conversation.id,
        turn_id=turn.id,
        system=system_blocks(preferences, use_memory=conversation.use_memory),
        tools=tools,
        messages=history(conversation),
        model=model,
        rounds_done=newest.round if newest else 0,
        stop_reason=newest.stop_reason if newest else "",
        usage=turn_usage(user_id=turn.user_id, turn_id=turn.id),
        tool_calls=turn_tool_calls(user_id=turn.user_id, turn_id=turn.id),
    )


@dataclass(kw_only=True)
class RunningTurn:
    """A turn in the loop. `emit` logs an event and sends it on at once; `store` commits its messages."""

    turn_id: UUID
    resumed: bool
    emit: Callable[[Event], None]
    store: TurnStore
    loop: LoopState | None = None
    waiting_for: list[dict[str, Any]] = field(default_factory=list)

    @property
    def partial(self) -> list[dict[str, Any]]:
        """The blocks of the answer under way that no message holds."""
        blocks = self.loop.partial_blocks if self.loop else []
        return [block for block in blocks if block.get("text", "").strip()]

    async def run(self) -> TurnOutcome:
        """Runs to the end. Cancellation and LeaseLost pass through; every other failure becomes an outcome."""
        if not self.resumed:
            self.emit(TurnStarted())
        prepared = await in_db(turn_prepare, self.turn_id)
        self.loop = prepared.state
        turn = prepared.turn
        if turn.said:
            return await self._say(turn.said)
        if turn.memories and not self.resumed:
            self.emit(MemoryContext(turn.memories, turn.memory_tokens))
        if prepared.too_long:
            self.loop = await self._shorter(self.loop, Need.LIMIT) or self.loop
        executor = await in_db(
            executor_for,
            user_id=turn.user_id,
            conversation_id=turn.conversation_id,
            turn_id=turn.id,
            message_id=prepared.message.id,
            use_memory=turn.conversation.use_memory,
            taint=taint_of(turn.user_id, turn.conversation_id),
            tools={tool.name: tool for tool in prepared.state.tools if find_tool(tool.name) != tool},
        )
        last: Event = INTERNAL_ERROR
        async for event in self._events(executor):
            if isinstance(event, Response | TurnFailed):
                last = event
                continue
            if isinstance(event, Question | ApprovalRequested):
                self.waiting_for.append({"type": event.type, **event.fields()})
            self.emit(event)
        return self._outcome(last)

    async def _say(self, text: str) -> TurnOutcome:
        """An answer that no model has to give."""
        self.emit(TextDelta(text))
        await self.store.save_assistant([{"type": "text", "text": text}], "end_turn", 1)
        return self._outcome(Response(text=text, usage=asdict(Usage())))

    async def _events(self, executor: ToolExecutor) -> AsyncGenerator[Event, None]:
        """Yields the loop's events; once, a conversation too long for the model is summed up and asked again."""
        shortened = False
        while self.loop is not None:
            events = run_turn(self.loop, client=default_client(), executor=executor, store=self.store)
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, TurnFailed) and event.code == TOO_LONG and not shortened:
                        shorter = await self._shorter(self.loop, Need.REFUSED)
                        if shorter is not None:
                            self.loop, shortened = shorter, True
                            break
                    if not (shortened and isinstance(event, TurnResumed)):
                        yield event
                else:
                    return

    async def _shorter(self, loop: LoopState, need: Need) -> LoopState | None:
        """The turn's state once its conversation has been summed up; None where that made it no shorter."""
        if not await conversation_compact(loop.conversation_id, need):
            return None
        shorter = await in_db(turn_reload, self.turn_id)
        shorter.build_id = loop.build_id
        return shorter

    def _outcome(self, event: Event) -> TurnOutcome:
        if not isinstance(event, Response):
            return stopped(self.turn_id, "failed", self.partial, event)
        return TurnOutcome(
            turn_id=self.turn_id,
            state=TurnStatus.WAITING if event.waits else TurnStatus.DONE,
            event=event,
            waiting_for=self.waiting_for if event.waits else [],
            usage=event.usage,
        )
