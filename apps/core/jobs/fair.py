"""Work for many users, some of them side by side, so that one that is slow, or fails, keeps no other waiting."""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Mapping
from typing import Any, TypeVar
from uuid import UUID

logger = logging.getLogger(__name__)

T = TypeVar("T")
Result = TypeVar("Result")

AT_ONCE = 4
"""Users for whom something is done side by side."""
LOOK_SECONDS = 2.0


class Failures(dict[Hashable, Exception]):
    """The errors of those whose work failed while the others' goes on."""

    def note(self, whose: Hashable, error: Exception) -> None:
        """The first is raised in the end; others are logged now."""
        if self:
            logger.error("what waited for another user failed, too", exc_info=error)
        self[whose] = error

    def raise_first(self) -> None:
        for error in self.values():
            raise error


def one_by_one(pieces: Iterable[T], work: Callable[[T], Result]) -> list[Result]:
    """The results of `work` for each piece. One that fails keeps none of those behind it waiting, and what the first such raised is
    raised once they are done."""
    results: list[Result] = []
    failed = Failures()
    for number, piece in enumerate(pieces):
        try:
            results.append(work(piece))
        except Exception as error:  # noqa: BLE001  it is raised in the end
            failed.note(number, error)
    failed.raise_first()
    return results


async def users_by_turns(
    due: Callable[[], Awaitable[Mapping[UUID, T]]], work: Callable[[T], Coroutine[Any, Any, None]]
) -> None:
    """Does what waits for users, also what comes meanwhile, until nothing is left.

    `due` gives what is next for each user, those first who have waited longest; `work` does one such piece. A user has one
    piece under way at a time, and goes before those who have had more. One whose piece fails gets no other; what the first such
    raised is raised once the others have nothing left.
    """
    turns: Counter[UUID] = Counter()
    busy: dict[UUID, asyncio.Task[None]] = {}
    failed = Failures()
    try:
        while True:
            waiting = {key: piece for key, piece in (await due()).items() if key not in {*busy, *failed}}
            for user_id in sorted(waiting, key=lambda user_id: turns[user_id])[: AT_ONCE - len(busy)]:
                turns[user_id] += 1
                busy[user_id] = asyncio.create_task(work(waiting[user_id]))
            if not busy:
                failed.raise_first()
                return
            await asyncio.wait(busy.values(), timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            for user_id in [user_id for user_id, task in busy.items() if task.done()]:
                try:
                    await busy.pop(user_id)
                except Exception as error:  # noqa: BLE001  it is raised in the end
                    failed.note(user_id, error)
    finally:
        for task in busy.values():
            task.cancel()
        await asyncio.gather(*busy.values(), return_exceptions=True)
