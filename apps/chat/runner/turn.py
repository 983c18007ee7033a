"""One turn: from its rows through the agent's loop to its outcome."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.agent.client import ModelClient
from apps.agent.events import (
    ApprovalRequested,
    Event,
    MemoryContext,
    Question,
    Response,
    TurnFailed,
    TurnStarted,
    to_json,
)
from apps.agent.executor import ToolExecutor, executor_for
from apps.agent.loop import TurnState as LoopState
from apps.agent.loop import TurnStore, run_turn
from apps.agent.sdk import default_client
from apps.agent.tools.registry import find_tool
from apps.chat.models import TurnState
from apps.chat.runner.prepare import Prepared, turn_prepare
from apps.chat.runner.rows import Outcome, stopped
from apps.chat.services.messages import FAILED, INTERRUPTED
from apps.chat.tool_service import PastConversations
from apps.core.database import in_db
from apps.memory.file_tool import MemoryFiles
from apps.memory.tool_service import NoteTools

logger = logging.getLogger(__name__)

INTERNAL_ERROR = TurnFailed("internal_error", "Something went wrong inside Izzy. The server's log says what.")


@dataclass(kw_only=True)
class RunningTurn:
    """A turn in the loop. `tell` logs an event and sends it on at once; `store` commits its messages."""

    turn_id: UUID
    resumed: bool
    tell: Callable[[Event], None]
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
            self.tell(TurnStarted())
        prepared = await in_db(turn_prepare, self.turn_id)
        self.loop = prepared.state
        if prepared.memories:
            self.tell(MemoryContext(prepared.memories, prepared.memory_tokens))
        last: Event = INTERNAL_ERROR
        executor = await _executor(prepared)
        client: ModelClient = default_client()
        async for event in run_turn(prepared.state, client=client, executor=executor, store=self.store):
            if isinstance(event, Response | TurnFailed):
                last = event
                continue
            if isinstance(event, Question | ApprovalRequested):
                self.waiting_for.append(to_json(event))
            self.tell(event)
        return self._outcome(last)

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
    memory = conversations = None
    if prepared.use_memory:
        memory = NoteTools(
            user_id=state.user_id, conversation_id=state.conversation_id, message_id=prepared.message_id
        )
        conversations = PastConversations(user_id=state.user_id, current_id=state.conversation_id)
    executor = await executor_for(
        user_id=state.user_id,
        conversation_id=state.conversation_id,
        turn_id=state.turn_id,
        memory=memory,
        conversations=conversations,
    )
    if prepared.use_memory:
        executor.files = MemoryFiles(user_id=state.user_id)
    executor.tools = {tool.name: tool for tool in state.tools if find_tool(tool.name) is None}
    return executor
