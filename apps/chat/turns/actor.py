"""The one that runs a conversation: it takes its turns one after the other, each through the agent's loop
to its outcome."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from functools import partial
from time import perf_counter
from typing import Any
from uuid import UUID

from django.conf import settings

from apps.agent.model.client import Usage
from apps.agent.model.sdk import default_client
from apps.agent.turn.events import (
    ApprovalRequested,
    Event,
    MemoryContext,
    Question,
    Response,
    SummingUp,
    TextDelta,
    TurnFailed,
    TurnResumed,
    TurnStarted,
)
from apps.agent.turn.executor import ToolExecutor
from apps.agent.turn.loop import LoopState, TurnTaken, run_turn
from apps.chat.attachments.blocks import expanded, references
from apps.chat.attachments.tools import attachment_read, images_asked
from apps.chat.conversations.handover import turn_capture, turn_index
from apps.chat.models import Conversation, MessageKind, Role, Turn, TurnStatus
from apps.chat.stream.events import LoggedEvent
from apps.chat.summary.selectors import EXTRACT, Budget, Need
from apps.chat.summary.services import (
    conversation_compact,
    conversation_compact_after,
    conversation_title_make,
)
from apps.chat.turns.preparing import turn_prepare, turn_reload
from apps.chat.turns.queue import (
    INTERRUPTION,
    Work,
    conversation_release,
    work_next,
    work_waits,
)
from apps.chat.turns.store import (
    EventLog,
    TurnOutcome,
    message_append,
    stopped,
    turn_ask,
    turn_finish,
)
from apps.core.db.pool import AWAY, in_db, shielded, through_outage
from apps.core.jobs.leases import LeaseLost
from apps.core.log_ids import log_activity, log_ids
from apps.core.metrics.base import SLOW, counter, histogram
from apps.core.text import estimate_tokens
from apps.core.traces import span

logger = logging.getLogger(__name__)
TURNS = counter("izzy_turns_total", "Turns that came to rest, by the state they are in then.", "state")
SECONDS = histogram(
    "izzy_turn_seconds",
    "Time that a turn ran until it ended or waited for the user.",
    "state",
    buckets=SLOW,
)
FIRST = histogram(
    "izzy_turn_first_token_seconds",
    "Time from the beginning of a turn to the first of its answer's text.",
    buckets=SLOW,
)
TOO_LONG = "context_too_long"
INTERNAL_ERROR = TurnFailed(
    "internal_error", "Something went wrong inside Izzy. The server's log says what."
)


@dataclass(kw_only=True)
class RunningTurn:
    """A turn in the loop, whose `TurnStore` it is: each message is committed together with the events before it."""

    turn_id: UUID
    log: EventLog
    resumed: bool
    turn: Turn = field(init=False)  # its row, once it is prepared
    loop: LoopState | None = None
    tokens: int = 0  # of the conversation's messages that are sent, by estimate
    is_unnamed: bool = False  # its conversation is called by its first words
    is_extracted: bool = False  # no model wrote the conversation's summary: it may be made anew
    begun: float = field(default_factory=perf_counter)
    first: float | None = None  # seconds until the first text came

    @property
    def partial(self) -> list[dict[str, Any]]:
        """The blocks of the answer under way that no message holds."""
        blocks = self.loop.partial_blocks if self.loop else []
        return [block for block in blocks if block.get("text", "").strip()]

    def emit(self, event: Event) -> None:
        """Logs an event and sends it on at once."""
        if self.first is None and isinstance(event, TextDelta):
            self.first = perf_counter() - self.begun
            if not self.resumed:
                FIRST.observe(self.first)
        self.log.emit(LoggedEvent.of(self.turn_id, event))

    async def save_assistant(self, blocks: list[dict[str, Any]], stop_reason: str, round: int) -> None:
        answer = partial(message_append, self.turn, role=Role.ASSISTANT, blocks=blocks, round=round)
        answer = partial(answer, stop_reason=stop_reason, seq=self.log.last_seq)
        self.tokens += estimate_tokens(str(blocks))
        await shielded(self.log.commit(answer))

    async def save_tool_results(
        self, uses: list[dict[str, Any]], blocks: list[dict[str, Any]], round: int
    ) -> list[dict[str, Any]]:
        keys: list[UUID] = []
        if any(use["name"] == attachment_read.name for use in uses):
            turn = self.turn
            keys = await in_db(images_asked, turn.user_id, turn.conversation_id, uses, blocks)
            blocks = [*blocks, *references(keys)]
        results = partial(message_append, self.turn, role=Role.USER, blocks=blocks, round=round)
        results = partial(results, kind=MessageKind.TOOL_RESULTS, seq=self.log.last_seq)
        self.tokens += estimate_tokens(str(blocks))
        await shielded(self.log.commit(results))
        if not keys or self.loop is None:
            return blocks
        message = {"role": "user", "content": blocks}
        before = list(self.loop.messages)
        [sent] = await in_db(expanded, self.turn.user_id, [message], self.loop.model, before)
        return list(sent["content"])

    async def run(self) -> TurnOutcome:
        """Runs to the end. Cancellation and LeaseLost pass through; every other failure becomes an outcome."""
        if not self.resumed:
            self.emit(TurnStarted())
        prepared = await shielded(in_db(turn_prepare, self.turn_id))
        self.loop, self.tokens = prepared.state, prepared.tokens
        turn = self.turn = prepared.turn
        self.is_unnamed = prepared.is_unnamed
        self.is_extracted = turn.conversation.summary_by == EXTRACT
        if turn.said:
            return await self._say(turn.said)
        if turn.memories and not self.resumed:
            self.emit(MemoryContext(turn.memories, turn.memory_tokens))
        if self.tokens > Budget(settings.IZZY_HISTORY_TOKENS).limit:
            self.loop = await self._shorter(self.loop, Need.LIMIT) or self.loop
        last: Event = INTERNAL_ERROR
        async for event in self._events(prepared.executor):
            if isinstance(event, Response | TurnFailed):
                last = event
                continue
            if isinstance(event, Question | ApprovalRequested):
                await shielded(self.log.commit(partial(turn_ask, self.turn_id, event)))
            else:
                self.emit(event)
        return self._outcome(last)

    async def _say(self, text: str) -> TurnOutcome:
        """An answer that no model has to give."""
        self.emit(TextDelta(text))
        await self.save_assistant([{"type": "text", "text": text}], "end_turn", 1)
        return self._outcome(Response(text=text, usage=asdict(Usage())))

    async def _events(self, executor: ToolExecutor) -> AsyncGenerator[Event, None]:
        """Yields the loop's events; once, a conversation too long for the model is summed up and asked again, but not where some of
        the answer was shown already."""
        shortened = False
        while self.loop is not None:
            events = run_turn(self.loop, client=default_client(), executor=executor, store=self)
            async with aclosing(events):
                async for event in events:
                    too_long = isinstance(event, TurnFailed) and event.code == TOO_LONG
                    if too_long and not shortened and not self.partial:
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
        self.emit(SummingUp())
        if not await conversation_compact(loop.conversation_id, need):
            return None
        shorter = await in_db(turn_reload, self.turn_id)
        shorter.build_id = loop.build_id
        return shorter

    def ended(self, state: TurnStatus) -> None:
        """Counts the turn and writes its line in the log, for those who run Izzy."""
        seconds = perf_counter() - self.begun
        TURNS.add(state)
        SECONDS.observe(seconds, state)
        first = None if self.first is None else round(self.first * 1000)
        log_activity(
            "turn", f"turn {state}", state=state, took_ms=round(seconds * 1000), first_token_ms=first
        )

    def _outcome(self, event: Event) -> TurnOutcome:
        if not isinstance(event, Response):
            return stopped(self.turn_id, "failed", self.partial, event)
        return TurnOutcome(
            turn_id=self.turn_id,
            state=TurnStatus.WAITING if event.waits else TurnStatus.DONE,
            event=event,
            usage=event.usage,
        )


@dataclass(eq=False)
class Actor:
    """Runs one conversation for as long as there is something to do, then gives it back."""

    conversation_id: UUID
    log: EventLog
    # Set where the conversation's rows have changed: it looks again.
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _closing: bool = False
    _finishing: bool = False
    _heard: bool = False  # there was news since it last looked for a turn
    lost: bool = False  # it ended since the conversation is not ours any more
    _extra: set[asyncio.Task[None]] = field(default_factory=set)

    def close(self) -> None:
        """The server is about to stop: end the running turn as interrupted and give the conversation back."""
        self._closing = True
        self.news.set()

    def finish(self) -> None:
        """The server is about to stop: let the running turn come to its end, and give the conversation back."""
        self._finishing = True
        self.news.set()

    async def run(self) -> None:
        """Until nothing is left to do, or the conversation is not ours any more."""
        try:
            look = True  # whether the rows may hold work
            while not (self._closing or self._finishing):
                if look:
                    self.news.clear()
                    self._heard = False
                    work = await self._work(None)
                    if work.turn_id is not None:
                        turn = RunningTurn(turn_id=work.turn_id, log=self.log, resumed=work.resumed)
                        with log_ids(turn=work.turn_id, conversation=self.conversation_id), span("turn"):
                            await self._run_turn(turn)
                elif self._extra:
                    await self._news_or(*self._extra)
                elif await self._release():
                    return
                else:
                    self._heard = True  # something came in meanwhile
                look = self._heard or self.news.is_set()
            while self._extra and not self._closing:
                self.news.clear()
                await self._news_or(*self._extra)
            await self._release(at_once=True)
        except (LeaseLost, TurnTaken):
            self.lost = True
            logger.warning(
                "conversation %s went to another process or was deleted", self.conversation_id
            )
        finally:
            for task in self._extra:
                task.cancel()

    async def _news_or(self, *tasks: "asyncio.Task[Any]") -> None:
        """Waits until there is news or one of the tasks is over."""
        news = asyncio.ensure_future(self.news.wait())
        await asyncio.wait([news, *tasks], return_when=asyncio.FIRST_COMPLETED)
        news.cancel()

    async def _release(self, *, at_once: bool = False) -> bool:
        async with self.log.lock:
            if self.log.pending:
                await self.log.write()
            self.log.given_back = await in_db(
                conversation_release, self.conversation_id, self.log.last_seq, at_once=at_once
            )
            return self.log.given_back

    async def _work(self, running: UUID | None) -> Work:
        """Takes up what the rows ask for, and logs it with that."""
        work = Work()

        def take() -> list[LoggedEvent] | None:
            nonlocal work
            work = work_next(self.conversation_id, running)
            return work.events

        waits = partial(work_waits, self.conversation_id, running)
        async with self.log.lock:
            if running is None:
                await shielded(self.log.write(take, where=waits))
                return work
            # The turn goes on logging meanwhile: what was found is numbered after that.
            await shielded(in_db(lambda: take() if waits() else None))
            for line in work.events:
                self.log.emit(line)
            if work.events:
                await self.log.write()
        return work

    async def _run_turn(self, turn: RunningTurn) -> None:
        task = asyncio.ensure_future(turn.run())
        try:
            outcome = await self._outcome(task, turn)
        finally:
            task.cancel()
            await asyncio.wait([task])  # what it has begun to write is there then
        await shielded(self.log.commit(partial(turn_finish, outcome, self.log.last_seq)))
        turn.ended(outcome.state)
        # The answer stands, whatever is wrong with search or memory: sweeps find what was not indexed or handed over.
        for follow_up in (turn_index, turn_capture):
            try:
                await in_db(follow_up, turn.turn_id)
            except Exception:
                logger.exception("turn %s: %s failed", turn.turn_id, follow_up.__name__)
        beside: list[Coroutine[Any, Any, None]] = []
        if turn.is_unnamed:
            beside.append(self._make_title(turn.turn_id))
        if turn.is_extracted or turn.tokens > Budget(settings.IZZY_HISTORY_TOKENS).history:
            beside.append(conversation_compact_after(self.conversation_id))
        for extra in map(asyncio.create_task, beside):
            self._extra.add(extra)
            extra.add_done_callback(self._extra.discard)

    async def _outcome(self, task: "asyncio.Task[TurnOutcome]", turn: RunningTurn) -> TurnOutcome:
        """How the turn ended; takes up what is asked for until then."""
        while not task.done():
            await self._news_or(task)
            if task.done():
                break
            self.news.clear()
            self._heard = True
            if self._closing or await self._is_stopped(turn.turn_id):
                task.cancel()
                await asyncio.wait([task])
        try:
            return await task
        except asyncio.CancelledError:
            if self._closing:
                return stopped(turn.turn_id, "interrupted", turn.partial, INTERRUPTION)
            return stopped(turn.turn_id, "stopped", turn.partial)
        except (LeaseLost, TurnTaken):
            raise
        except Exception as error:  # a turn may fail in any way, the conversation must go on
            held = partial(in_db, Conversation.lease_held, self.conversation_id)
            if not await through_outage(held):
                raise LeaseLost(str(self.conversation_id)) from error
            logger.exception("turn %s failed", turn.turn_id)
            return stopped(turn.turn_id, "failed", turn.partial, INTERNAL_ERROR)

    async def _is_stopped(self, running: UUID) -> bool:
        """Takes up what is asked for beside the running turn, and says whether that is to stop. While the database is away the turn
        goes on: what is asked for stands in the rows, and the upkeep notifies of it again."""
        try:
            return (await self._work(running)).stop
        except AWAY as error:
            logger.warning("could not look what is asked for: %s", error)
            return False

    async def _make_title(self, turn_id: UUID) -> None:
        try:
            made = await conversation_title_make(self.conversation_id, turn_id)
        except Exception:  # the title made of its first words stays
            logger.exception("conversation %s got no title", self.conversation_id)
            return
        if made is not None:
            async with self.log.lock:
                self.log.emit(LoggedEvent.of(turn_id, made))
