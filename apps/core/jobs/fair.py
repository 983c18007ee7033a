"""Work for many users, some of them side by side, so that a slow one keeps no other waiting."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar
from uuid import UUID

T = TypeVar("T")

AT_ONCE = 4
"""Users for whom something is done side by side."""
LOOK_SECONDS = 2.0


async def users_by_turns(
    due: Callable[[], Awaitable[Mapping[UUID, T]]], work: Callable[[T], Coroutine[Any, Any, None]]
) -> None:
    """Does what waits for users, also what comes meanwhile, until nothing is left.

    `due` gives what is next for each user, those first who have waited longest; `work` does one such piece. A user has one
    piece under way at a time, and goes before those who have had more. What `work` raises ends everything and is raised.
    """
    turns: Counter[UUID] = Counter()
    busy: dict[UUID, asyncio.Task[None]] = {}
    try:
        while True:
            waiting = {user_id: piece for user_id, piece in (await due()).items() if user_id not in busy}
            for user_id in sorted(waiting, key=lambda user_id: turns[user_id])[: AT_ONCE - len(busy)]:
                turns[user_id] += 1
                busy[user_id] = asyncio.create_task(work(waiting[user_id]))
            if not busy:
                return
            await asyncio.wait(busy.values(), timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            for user_id in [user_id for user_id, task in busy.items() if task.done()]:
                await busy.pop(user_id)
    finally:
        for task in busy.values():
            task.cancel()
        await asyncio.gather(*busy.values(), return_exceptions=True)
