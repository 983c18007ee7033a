"""One turn: from its rows through the agent's loop to its outcome."""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from typing import Any
from uuid import UUID

from apps.agent.client import Usage
from apps.agent.events import (
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
from apps.agent.executor import ToolExecutor, executor_for
from apps.agent.loop import TurnState as LoopState
from apps.agent.loop import TurnStore, run_turn
from apps.agent.sdk import default_client
from apps.agent.tools.registry import find_tool
from apps.chat.models import TurnState
from apps.chat.runner.prepare import Prepared, turn_prepare, turn_reload
from apps.chat.runner.rows import Outcome, stopped
from apps.chat.selectors.words import taint_of
from apps.chat.services.messages import FAILED, INTERRUPTED
from apps.chat.summary.folding import conversation_fold
from apps.chat.summary.selectors import Need
from apps.core.database import in_db

logger = logging.getLogger(__name__)

TOO_LONG = "context_too_long"
INTERNAL_ERROR = TurnFailed("internal_error", "Something went wrong inside Izzy. The server's log says what.")


@dataclass(kw_only=True)
class RunningTurn:
    """A turn in the loop. `tell` logs an event and sends it on at once; `store` commits its messages."""

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

    async def run(self) -> Outcome:
        """Runs to the end. Cancellation and LeaseLost pass through; every other failure becomes an outcome."""
        if not self.resumed:
            self.emit(TurnStarted())
        prepared = await in_db(turn_prepare, self.turn_id)
        self.loop = prepared.state
        if prepared.said:
            return await self._say(prepared.said)
        if prepared.memories:
            self.emit(MemoryContext(prepared.memories, prepared.memory_tokens))
        if prepared.too_long:
            self.loop = await self._shorter(self.loop, Need.LIMIT) or self.loop
        last: Event = INTERNAL_ERROR
        async for event in self._events(await _executor(prepared)):
            if isinstance(event, Response | TurnFailed):
                last = event
                continue
            if isinstance(event, Question | ApprovalRequested):
                self.waiting_for.append({"type": event.type, **event.fields()})
            self.emit(event)
        return self._outcome(last)

    async def _say(self, text: str) -> Outcome:
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
        if not await conversation_fold(loop.conversation_id, need):
            return None
        shorter = await in_db(turn_reload, self.turn_id)
        shorter.build_id = loop.build_id
        return shorter

    def _outcome(self, event: Event) -> Outcome:
        if not isinstance(event, Response):
            return stopped(self.turn_id, FAILED, self.partial, event)
        return Outcome(
            turn_id=self.turn_id,
            state=TurnState.WAITING if event.waits else TurnState.DONE,
            event=event,
            waiting_for=self.waiting_for if event.waits else [],
            usage=event.usage,
        )

    def failed(self) -> Outcome:
        """The outcome after an error that nobody foresaw."""
        return stopped(self.turn_id, FAILED, self.partial, INTERNAL_ERROR)

    def interrupted(self, message: str) -> Outcome:
        """The outcome when the server stops in an orderly way."""
        return stopped(self.turn_id, INTERRUPTED, self.partial, TurnFailed(INTERRUPTED, message))


async def _executor(prepared: Prepared) -> ToolExecutor:
    """The executor of this turn: in a conversation without memory no tool reaches notes or past conversations."""
    state = prepared.state
    return await executor_for(
        user_id=state.user_id,
        conversation_id=state.conversation_id,
        turn_id=state.turn_id,
        message_id=prepared.message_id,
        use_memory=prepared.use_memory,
        taint=taint_of(state.user_id, state.conversation_id),
        tools={tool.name: tool for tool in state.tools if find_tool(tool.name) != tool},
    )
