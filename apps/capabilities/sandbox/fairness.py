"""Queues calls: at most `places` at once, users by turns, each user's in the order in which they came."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from uuid import UUID

Waited = Callable[[int], Awaitable[None]]
"""Told how many come before, once, where a call has to wait."""


class FairQueue:
    """Belongs to one event loop. After a user's call has begun the turn goes to the next user who waits; a user who is
    alone uses all places. So with N users each begins at least every Nth call, however many the others have."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: OrderedDict[UUID, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def place(self, user_id: UUID, on_wait: Waited | None = None) -> AsyncIterator[None]:
        """Held as long as the block runs. Cancelling while waiting gives the turn up."""
        await self._enter(user_id, on_wait)
        try:
            yield
        finally:
            self._leave()

    async def _enter(self, user_id: UUID, on_wait: Waited | None) -> None:
        if self._free and not self._waiting:
            self._free -= 1
            return
        ahead = self.waiting
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user_id, deque()).append(turn)
        try:
            if on_wait is not None:
                await on_wait(ahead)
            await turn
        except asyncio.CancelledError:
            self._give_up(user_id, turn)
            raise

    def _give_up(self, user_id: UUID, turn: "asyncio.Future[None]") -> None:
        if turn.done() and not turn.cancelled():
            self._leave()  # its turn came in the same moment
            return
        queue = self._waiting.get(user_id)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[user_id]

    def _leave(self) -> None:
        self._free += 1
        while self._free and self._waiting:
            user_id, queue = self._waiting.popitem(last=False)
            turn = queue.popleft()
            if queue:
                self._waiting[user_id] = queue  # at the end: the others come first
            if not turn.done():
                self._free -= 1
                turn.set_result(None)
