"""Users take turns where more want to run than may."""

import asyncio
from uuid import UUID

import pytest

from apps.capabilities.sandbox.running import FairQueue

ALICE, BOB, CHARLIE = UUID(int=1), UUID(int=2), UUID(int=3)


class Runs:
    """Calls that note when they begin and go on until they are let go."""

    def __init__(self, places: int) -> None:
        self.queue = FairQueue(places)
        self.begun: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._go: dict[str, asyncio.Event] = {}

    async def add(self, user: UUID, *names: str) -> None:
        for name in names:
            self._go[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._run(user, name))
            await asyncio.sleep(0)

    async def _run(self, user: UUID, name: str) -> None:
        async with self.queue.place(user):
            self.begun.append(name)
            await self._go[name].wait()

    async def finish(self, name: str) -> None:
        self._go[name].set()
        await self.tasks[name]
        await asyncio.sleep(0)

    async def finish_all(self) -> list[str]:
        done: set[str] = set()
        while left := [name for name in self.begun if name not in done]:
            await self.finish(left[0])
            done.add(left[0])
        return self.begun


async def test_users_take_turns_and_each_users_calls_keep_their_order() -> None:
    runs = Runs(1)
    await runs.add(ALICE, "a1", "a2", "a3", "a4")
    await runs.add(BOB, "b1", "b2")
    await runs.add(CHARLIE, "c1")
    assert await runs.finish_all() == ["a1", "a2", "b1", "c1", "a3", "b2", "a4"]


async def test_a_newcomer_waits_for_at_most_one_call_of_each_of_the_others() -> None:
    runs = Runs(2)
    await runs.add(ALICE, *(f"a{n}" for n in range(50)))
    await runs.add(BOB, "b")
    await runs.finish("a0")
    await runs.finish("a1")
    assert "b" in runs.begun[:4]
    await runs.finish_all()


async def test_a_user_alone_uses_all_places() -> None:
    runs = Runs(3)
    await runs.add(ALICE, "a1", "a2", "a3", "a4")
    assert runs.begun == ["a1", "a2", "a3"]
    await runs.finish_all()


async def test_who_is_cancelled_while_waiting_never_begins_and_blocks_nobody() -> None:
    runs = Runs(1)
    await runs.add(ALICE, "a1", "a2")
    await runs.add(BOB, "b1")
    runs.tasks["a2"].cancel()
    with pytest.raises(asyncio.CancelledError):
        await runs.tasks["a2"]
    assert await runs.finish_all() == ["a1", "b1"]
    assert runs.queue.waiting == 0


async def test_who_is_cancelled_as_its_turn_comes_passes_it_on() -> None:
    runs = Runs(1)
    await runs.add(ALICE, "a1", "a2")
    await runs.add(BOB, "b1")
    runs._go["a1"].set()
    await asyncio.sleep(0)  # a1 has ended, a2 has its place and has not begun
    runs.tasks["a2"].cancel()
    with pytest.raises(asyncio.CancelledError):
        await runs.tasks["a2"]
    await asyncio.sleep(0)
    assert runs.begun == ["a1", "b1"]
    await runs.finish_all()


async def test_who_waits_is_told_how_many_come_before() -> None:
    queue, told = FairQueue(1), []

    async def note(ahead: int) -> None:
        told.append(ahead)

    async def one() -> None:
        async with queue.place(ALICE, note):
            await asyncio.sleep(0.01)

    await asyncio.gather(one(), one(), one())
    assert told == [0, 1]


async def test_a_call_that_fails_gives_its_place_back() -> None:
    queue = FairQueue(1)
    for _ in range(3):
        with pytest.raises(ValueError):
            async with queue.place(ALICE):
                raise ValueError
    async with asyncio.timeout(1), queue.place(BOB):
        pass
