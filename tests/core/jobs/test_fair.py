"""Work for many users: side by side, by turns, each user's in order."""

import asyncio
from collections.abc import Callable, Mapping
from uuid import UUID, uuid4

import pytest

from apps.core.jobs import fair
from apps.core.jobs.fair import one_by_one, users_by_turns

ALICE, BOB = uuid4(), uuid4()


class Work:
    """Pieces that wait, by user; each takes a moment."""

    def __init__(self, waiting: Mapping[UUID, int]) -> None:
        self.waiting = dict(waiting)
        self.done: list[UUID] = []
        self.running: set[UUID] = set()
        self.most = 0
        self.after: Callable[[], object] = lambda: None

    async def due(self) -> dict[UUID, UUID]:
        return {user_id: user_id for user_id, left in self.waiting.items() if left}

    async def do(self, user_id: UUID) -> None:
        assert user_id not in self.running
        self.running.add(user_id)
        self.most = max(self.most, len(self.running))
        await asyncio.sleep(0.01)
        self.running.discard(user_id)
        self.waiting[user_id] -= 1
        self.done.append(user_id)
        self.after()


async def test_it_ends_when_nothing_is_left() -> None:
    work = Work({})
    await users_by_turns(work.due, work.do)
    assert work.done == []


async def test_users_go_side_by_side_and_one_users_pieces_one_after_the_other() -> None:
    work = Work({uuid4(): 2 for _ in range(fair.AT_ONCE + 3)})
    await users_by_turns(work.due, work.do)
    assert len(work.done) == 2 * (fair.AT_ONCE + 3)
    assert work.most == fair.AT_ONCE


async def test_a_user_with_much_to_do_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair, "AT_ONCE", 1)
    work = Work({ALICE: 5, BOB: 1})
    await users_by_turns(work.due, work.do)
    assert work.done == [ALICE, BOB, *[ALICE] * 4]


async def test_what_comes_meanwhile_is_done_as_well() -> None:
    work = Work({ALICE: 1})
    work.after = lambda: work.waiting.setdefault(BOB, 1)
    await users_by_turns(work.due, work.do)
    assert work.done == [ALICE, BOB]


async def test_a_failure_is_raised_when_the_others_have_nothing_left() -> None:
    work = Work({ALICE: 2, BOB: 3})

    async def do(user_id: UUID) -> None:
        if user_id == ALICE:
            raise ValueError("broken")
        await work.do(user_id)

    with pytest.raises(ValueError, match="broken"):
        await users_by_turns(work.due, do)
    assert work.done == [BOB] * 3


async def test_where_nobody_can_say_what_waits_it_ends_with_what_runs() -> None:
    asked, stopped = 0, asyncio.Event()

    async def due() -> dict[UUID, UUID]:
        nonlocal asked
        asked += 1
        if asked > 1:
            raise ValueError("broken")
        return {ALICE: ALICE, BOB: BOB}

    async def do(user_id: UUID) -> None:
        if user_id == ALICE:
            return
        try:
            await asyncio.sleep(3600)
        finally:
            stopped.set()

    with pytest.raises(ValueError, match="broken"):
        await users_by_turns(due, do)
    assert stopped.is_set()


def test_one_that_fails_keeps_none_of_those_behind_it_waiting(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []

    def work(number: int) -> int:
        done.append(number)
        return 10 // number

    assert one_by_one([5, 2], work) == [2, 5]
    with pytest.raises(ZeroDivisionError):
        one_by_one([1, 0, 2], work)
    assert done == [5, 2, 1, 0, 2]
    assert not caplog.records
    with pytest.raises(ZeroDivisionError):
        one_by_one([0, 0, 4], work)
    assert done[-1] == 4
    assert "failed, too" in caplog.text
