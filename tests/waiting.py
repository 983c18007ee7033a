"""Waiting for a state, however long a busy machine takes to get there: nothing in the tests measures time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

PATIENCE = 240.0
"""Seconds after which something never comes."""

Found = TypeVar("Found")


async def until(holds: Callable[[], Awaitable[object] | object], *, every: float = 0.05) -> None:
    """Until what `holds` gives, or what that gives when awaited, is true; looks `every` so many seconds."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = holds()
            if await found if isinstance(found, Awaitable) else found:
                return
            await asyncio.sleep(every)


def eventually(
    check: Callable[[], Found], what: Callable[[], object] = lambda: "it never came to that"
) -> Found:
    """Returns what `check` gives once it is true. `what` says what there is instead where that never happens."""
    deadline = time.monotonic() + PATIENCE
    while not (found := check()):
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)
    return found
