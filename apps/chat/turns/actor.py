"""The one that runs a conversation: it takes its turns one after the other and logs what happens in them, numbered, sent on at
once and stored in batches."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

from apps.agent.turn.loop import TurnTaken
from apps.chat.conversations.capturing import turn_capture
from apps.chat.conversations.indexing import turn_index
from apps.chat.models import Conversation, MessageKind, Role
from apps.chat.stream.events import LoggedEvent
from apps.chat.summary.services import conversation_compact_after
from apps.chat.turns.queue import INTERRUPTION, RESERVE, Numbers, Work, conversation_release, work_next
from apps.chat.turns.running import INTERNAL_ERROR, RunningTurn
from apps.chat.turns.store import (
    LogWrite,
    TurnOutcome,
    log_write,
    logs_write,
    message_save,
    stopped,
    turn_finish,
)
from apps.chat.turns.titles import conversation_title_make
from apps.core.db.pool import in_db, settled
from apps.core.jobs.leases import EXTEND_SECONDS, LeaseLost

logger = logging.getLogger(__name__)
Publish = Callable[[UUID, int, Sequence[LoggedEvent]], None]
"""Called with the conversation, the number of the event before these, and these."""


class EventLog:
    """The events that a conversation's runner emits. `publish` gets every event at once, before it is stored; what must not be lost
    (the end of a turn) goes through `commit`, which stores it first. Whoever writes holds `lock`."""

    def __init__(self, conversation_id: UUID, numbers: Numbers, publish: Publish) -> None:
        self.conversation_id = conversation_id
        self.lock = asyncio.Lock()
        self.given_back = False
        self._pending: list[LoggedEvent] = []
        self._written_at = asyncio.get_running_loop().time()
        self._published, self._next, self._reserved = numbers
        self._publish = publish

    @property
    def last_seq(self) -> int:
        """The number of the newest event."""
        return self._next - 1

    def is_due(self, now: float) -> bool:
        """Whether something waits to be stored, or the lease to be extended, and nobody is at it."""
        waits = self._pending or now - self._written_at > EXTEND_SECONDS
        return bool(waits) and not self.given_back and not self.lock.locked()

    def emit(self, line: LoggedEvent) -> None:
        """Numbers an event, sends it on, and has it stored with the next batch."""
        event = replace(line, seq=self._next)
        self._next += 1
        self._pending.append(event)
        self._send_on([event])

    async def commit(self, change: Callable[[], list[LoggedEvent]]) -> None:
        """Makes a change of rows together with everything emitted so far, then sends on the events of the change."""

        async def locked() -> None:
            async with self.lock:
                await self.write(change)

        await settled(locked())

    async def flush(self) -> None:
        """Stores what was emitted so far, so that rows show all of it."""
        async with self.lock:
            if self._pending and not self.given_back:
                with suppress(LeaseLost):
                    await self.write()

    async def write(self, change: Callable[[], list[LoggedEvent]] | None = None) -> None:
        """Stores what waits, and makes a change with it. Hold the lock. Raises LeaseLost."""
        write = self.batch()
        more = await in_db(log_write, write, change)
        self.stored(write)
        self._next += len(more)
        if more:
            self._send_on(more)

    def _send_on(self, events: Sequence[LoggedEvent]) -> None:
        self._publish(self.conversation_id, self._published, events)
        self._published = events[-1].seq

    def batch(self) -> LogWrite:
        """The events to store now. Hold the lock; call `stored` once they are."""
        if self._reserved - self._next < RESERVE // 2:
            self._reserved = self._next + RESERVE
        return LogWrite(
            conversation_id=self.conversation_id,
            events=tuple(self._pending),
            next_seq=self._next,
            reserved=self._reserved,
        )

    def stored(self, write: LogWrite) -> None:
        del self._pending[: len(write.events)]
        self._written_at = asyncio.get_running_loop().time()


async def logs_store(logs: Sequence[EventLog]) -> set[UUID]:
    """Stores what waits in these logs in one transaction, extending their leases; the conversations that are not ours any
    more. None of the logs is locked by anybody else."""
    for log in logs:
        await log.lock.acquire()
    try:
        writes = [log.batch() for log in logs]
        lost = await in_db(logs_write, writes)
        for log, write in zip(logs, writes, strict=True):
            log.stored(write)
        return set(lost)
    finally:
        for log in logs:
            log.lock.release()


class Actor:
    """Runs one conversation for as long as there is something to do, then gives it back."""

    def __init__(self, log: EventLog) -> None:
        self.conversation_id = log.conversation_id
        self.log = log
        self._news = asyncio.Event()
        self._closing = False
        self._extra: set[asyncio.Task[None]] = set()

    def notify(self) -> None:
        """Something has changed in the conversation's rows: look again."""
        self._news.set()

    @property
    def has_news(self) -> bool:
        """Whether `notify` was called since the rows were last looked at."""
        return self._news.is_set()

    def close(self) -> None:
        """The server is about to stop: end the running turn as interrupted and give the conversation back."""
        self._closing = True
        self._news.set()

    async def run(self) -> None:
        """Until nothing is left to do, or the conversation is not ours any more."""
        try:
            while not self._closing:
                self._news.clear()
                work = await self._work(None)
                if work.turn_id is not None:
                    await self._run_turn(work.turn_id, resumed=work.resumed)
                elif not self._news.is_set() and await self._rest():
                    return
            await self._release(at_once=True)
        except (LeaseLost, TurnTaken):
            logger.warning("conversation %s went to another process or was deleted", self.conversation_id)
        finally:
            for task in self._extra:
                task.cancel()

    async def _rest(self) -> bool:
        """Waits for what still goes on beside turns, then gives the conversation back; False when there is news."""
        if self._extra:
            news = asyncio.ensure_future(self._news.wait())
            await asyncio.wait([news, *self._extra], return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
            return False
        return await self._release()

    async def _release(self, *, at_once: bool = False) -> bool:
        async with self.log.lock:
            await self.log.write()
            release = partial(conversation_release, at_once=at_once)
            given_back = await in_db(release, self.conversation_id, self.log.last_seq)
            self.log.given_back = given_back
            return given_back

    async def _work(self, running: UUID | None) -> Work:
        async with self.log.lock:
            work = await settled(in_db(work_next, self.conversation_id, running))
            for line in work.events:
                self.log.emit(line)
            if work.events:
                await self.log.write()
        return work

    async def _run_turn(self, turn_id: UUID, *, resumed: bool) -> None:
        turn = RunningTurn(
            turn_id=turn_id,
            resumed=resumed,
            emit=lambda event: self.log.emit(LoggedEvent.of(turn_id, event)),
            store=MessageStore(self.log, turn_id),
        )
        task = asyncio.ensure_future(turn.run())
        try:
            await self._watch(task, turn_id)
            outcome = await self._outcome(task, turn)
        finally:
            task.cancel()
        await self.log.commit(partial(turn_finish, outcome, self.log.last_seq))
        # The answer stands, whatever is wrong with search or memory: sweeps find what was not indexed or handed over.
        for follow_up in (turn_index, turn_capture):
            try:
                await in_db(follow_up, turn_id)
            except Exception:
                logger.exception("turn %s: %s failed", turn_id, follow_up.__name__)
        self._start(self._make_title(turn_id))
        self._start(conversation_compact_after(self.conversation_id))

    async def _watch(self, task: "asyncio.Task[TurnOutcome]", turn_id: UUID) -> None:
        """Until the turn has ended or was cancelled: takes up what is asked for meanwhile."""
        while not task.done():
            news = asyncio.ensure_future(self._news.wait())
            await asyncio.wait([task, news], return_when=asyncio.FIRST_COMPLETED)
            news.cancel()
            if task.done():
                return
            self._news.clear()
            if self._closing or (await self._work(turn_id)).stop:
                task.cancel()
                await asyncio.wait([task])

    async def _outcome(self, task: "asyncio.Task[TurnOutcome]", turn: RunningTurn) -> TurnOutcome:
        try:
            return await task
        except asyncio.CancelledError:
            if self._closing:
                return stopped(turn.turn_id, "interrupted", turn.partial, INTERRUPTION)
            return stopped(turn.turn_id, "stopped", turn.partial)
        except (LeaseLost, TurnTaken):
            raise
        except Exception as error:  # a turn may fail in any way, the conversation must go on
            if not await in_db(Conversation.lease_held, self.conversation_id):
                raise LeaseLost(str(self.conversation_id)) from error
            logger.exception("turn %s failed", turn.turn_id)
            return stopped(turn.turn_id, "failed", turn.partial, INTERNAL_ERROR)

    def _start(self, work: "Any") -> None:
        task = asyncio.ensure_future(work)
        self._extra.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._extra.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("conversation %s: what follows a turn failed", self.conversation_id, exc_info=error)

    async def _make_title(self, turn_id: UUID) -> None:
        line = await conversation_title_make(turn_id)
        if line is not None:
            async with self.log.lock:
                self.log.emit(line)


class MessageStore:
    """`TurnStore` of the loop: each message is committed together with the events before it."""

    def __init__(self, log: EventLog, turn_id: UUID) -> None:
        self._log = log
        self._turn_id = turn_id

    async def save_assistant(self, blocks: list[dict[str, Any]], stop_reason: str, round: int) -> None:
        await self._save(role=Role.ASSISTANT, blocks=blocks, stop_reason=stop_reason, round=round)

    async def save_tool_results(self, blocks: list[dict[str, Any]], round: int) -> None:
        await self._save(role=Role.USER, kind=MessageKind.TOOL_RESULTS, blocks=blocks, round=round)

    async def _save(self, **values: Any) -> None:
        await self._log.commit(partial(message_save, self._turn_id, seq=self._log.last_seq, **values))
