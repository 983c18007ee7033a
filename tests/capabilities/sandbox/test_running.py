"""Calls through the queue: how many at once, in which order, and what cancelling does."""

import asyncio
import ctypes
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.capabilities.sandbox.base import BUILD_LIMITS, ErrorCode, Purpose, RunResult, SandboxSpec
from apps.capabilities.sandbox.bubblewrap.backend import BubblewrapBackend
from apps.capabilities.sandbox.running import open_sandbox, queue_of, run_capability
from tests.waiting import PATIENCE, until

from .backend_suite import code_of, own_processes

SLEEPS = {"main.py": "import time\ndef run(args): time.sleep(60)"}
FLOODS = {"main.py": "import os\ndef run(args):\n while True: os.write(1, bytes(65536))"}
SET_CHILD_SUBREAPER = 36
ALICE, BOB = uuid4(), uuid4()


def call(user: UUID, files: dict[str, str], **options: Any) -> "asyncio.Task[RunResult]":
    return asyncio.create_task(run_capability(SandboxSpec(user_id=user), files, {}, **options))


async def test_no_more_run_at_once_than_allowed(bubblewrap: BubblewrapBackend, settings: Any) -> None:
    settings.IZZY_SANDBOXES = 2
    begun: list[str] = []

    async def listen(event: dict[str, Any]) -> None:
        if event["status"] in {"preparing", "running"}:
            begun.append(event["status"])

    calls = [call(ALICE, SLEEPS, progress=listen) for _ in range(6)]
    await until(lambda: begun.count("running") == 2)
    assert (begun.count("preparing"), queue_of(Purpose.RUN).waiting) == (2, 4)
    calls[0].cancel()
    await until(lambda: begun.count("running") == 3)
    assert (begun.count("preparing"), queue_of(Purpose.RUN).waiting) == (3, 3)
    for task in calls:
        task.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


async def test_a_call_of_another_user_comes_before_the_rest_of_a_long_line(
    bubblewrap: BubblewrapBackend, settings: Any
) -> None:
    settings.IZZY_SANDBOXES = 1
    begun: list[str] = []

    def note(name: str) -> Any:
        async def listen(event: dict[str, Any]) -> None:
            if event["status"] == "preparing":
                begun.append(name)

        return listen

    hello = {"main.py": "def run(args): return ''"}
    calls = [call(ALICE, hello, progress=note(f"a{number}")) for number in range(4)]
    calls.append(call(BOB, hello, progress=note("b")))
    await asyncio.gather(*calls)
    assert begun == ["a0", "a1", "b", "a2", "a3"]


async def test_who_waits_is_told_and_can_be_cancelled(
    bubblewrap: BubblewrapBackend, settings: Any
) -> None:
    settings.IZZY_SANDBOXES = 1
    told: list[dict[str, Any]] = []

    async def listen(event: dict[str, Any]) -> None:
        told.append(event)

    running = call(ALICE, SLEEPS)
    waiting = call(ALICE, SLEEPS, progress=listen)
    await until(lambda: bool(told))
    waiting.cancel()
    running.cancel()
    for task in (waiting, running):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert told == [{"status": "queued", "ahead": 0}]
    assert queue_of(Purpose.RUN).waiting == 0


async def test_cancelling_kills_at_once_and_frees_the_place(
    bubblewrap: BubblewrapBackend, settings: Any
) -> None:
    settings.IZZY_SANDBOXES = 1
    others = own_processes()
    running = call(ALICE, SLEEPS)
    await until(lambda: len(own_processes(others)) >= 3)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not own_processes(others)
    assert (await call(BOB, {"main.py": "def run(args): return 'next'"})).result == "next"


async def test_what_is_ended_leaves_no_zombies_where_the_first_process_waits_for_nobody(
    bubblewrap: BubblewrapBackend, settings: Any
) -> None:
    """As in a container: this process takes the place of the first one and waits for nobody."""
    settings.IZZY_SANDBOXES = 1
    prctl = ctypes.CDLL(None).prctl
    assert prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        others = own_processes()
        for files in (SLEEPS, FLOODS, SLEEPS):
            running = call(ALICE, files)
            if files is SLEEPS:  # the other one ends by itself, however soon
                await until(lambda: len(own_processes(others)) >= 3)
                running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        assert not own_processes(others)
    finally:
        prctl(SET_CHILD_SUBREAPER, 0, 0, 0, 0)


async def test_builds_do_not_take_the_places_of_runs(
    bubblewrap: BubblewrapBackend, settings: Any
) -> None:
    """A build tries its tool while it holds its own sandbox."""
    settings.IZZY_SANDBOXES = 1
    spec = SandboxSpec(user_id=ALICE, purpose=Purpose.BUILD, limits=BUILD_LIMITS)
    async with asyncio.timeout(PATIENCE), open_sandbox(spec):
        assert (await call(ALICE, {"main.py": "def run(args): return 'tried'"})).result == "tried"


@pytest.mark.parametrize("line", ["-e .", "six @ https://example.org/six.whl", "six=1"])
async def test_requirements_that_are_refused_are_an_outcome(
    bubblewrap: BubblewrapBackend, line: str
) -> None:
    outcome = await run_capability(SandboxSpec(user_id=ALICE, requirements=line), SLEEPS, {})
    assert code_of(outcome) == ErrorCode.INSTALL_FAILED
    assert outcome.error is not None
    assert "line 1" in outcome.error.message


async def test_a_listener_that_fails_does_not_end_the_run(bubblewrap: BubblewrapBackend) -> None:
    async def broken(event: dict[str, Any]) -> None:
        raise RuntimeError("nobody listens")

    outcome = await call(
        ALICE, {"main.py": "def run(args):\n print('x')\n return 'done'"}, progress=broken
    )
    assert outcome.result == "done"
