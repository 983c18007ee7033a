"""Sandboxes leave the processor to the server and its worker, whichever way the kernel shares it out."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest

from apps.capabilities.sandbox.base import BUILD_LIMITS, Purpose
from apps.capabilities.sandbox.bubblewrap import processes
from apps.capabilities.sandbox.bubblewrap.backend import BubblewrapBackend
from apps.capabilities.sandbox.bubblewrap.processes import watchdog
from tests.waiting import until

from .backend_suite import opened, own_processes, spec

Fact = TypeVar("Fact")
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")


def nice_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[16])


def group_nice_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/autogroup").read_text().split()[-1])


def of_watchdog() -> int:
    """How nice the thread is that starts them."""
    found: int = watchdog().call(lambda: os.getpriority(os.PRIO_PROCESS, 0)).result()
    return found


async def test_every_process_of_a_sandbox_is_nicer_than_what_started_it(
    bubblewrap: BubblewrapBackend,
) -> None:
    before = own_processes()
    expected = min(19, of_watchdog() + 5)
    async with opened(bubblewrap, spec(purpose=Purpose.BUILD, limits=BUILD_LIMITS)) as sandbox:
        assert (await sandbox.run_code("import os; os.getpriority(0, 0)")).value == str(expected)
        told = await sandbox.run_command("nice; (setsid sleep 60 &); sleep 0.1")
        assert told.stdout == f"{expected}\n"
        assert len(own_processes(before)) >= 4
        assert _found(before, nice_of) == {expected}
    assert os.getpriority(os.PRIO_PROCESS, 0) < expected or expected == 19


@pytest.mark.skipif(
    not AUTOGROUP.exists() or AUTOGROUP.read_text().strip() != "1",
    reason="this kernel does not share by sessions",
)
async def test_so_is_every_session_within_also_one_that_a_tool_opens(
    bubblewrap: BubblewrapBackend,
) -> None:
    before = own_processes()
    expected = min(19, of_watchdog() + 5)
    async with opened(bubblewrap, spec(purpose=Purpose.BUILD, limits=BUILD_LIMITS)) as sandbox:
        running = asyncio.ensure_future(
            sandbox.run_command("echo 0 > /proc/self/autogroup; setsid sleep 60")
        )
        await until(lambda: _sleeps(before))
        await until(lambda: _found(before, group_nice_of) == {expected})
        running.cancel()


def _sleeps(before: set[int]) -> bool:
    return "sleep\n" in _found(before, lambda pid: Path(f"/proc/{pid}/comm").read_text())


def _found(before: set[int], fact: Callable[[int], Fact]) -> set[Fact]:
    """A fact of each process begun since; some end while they are looked at."""
    facts = set()
    for pid in own_processes(before):
        with suppress(FileNotFoundError, ProcessLookupError):
            facts.add(fact(pid))
    return facts


def test_one_that_is_nice_already_starts_no_more_than_the_nicest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for own, expected in ((0, 5), (10, 15), (17, 19), (19, 19)):
        monkeypatch.setattr(os, "getpriority", lambda *_, own=own: own)
        assert processes.Watchdog().niceness == expected
