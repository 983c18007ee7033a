"""The event log of a conversation in the process that runs it: events are numbered, sent on at once and stored in batches."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import UUID

from apps.chat.log import LoggedEvent
from apps.chat.runner.rows import LogWrite, log_write, logs_write
from apps.chat.runner.work import RESERVE, Numbers
from apps.core.database import in_db, settled
from apps.core.jobs.leases import EXTEND_SECONDS, LeaseLost

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
