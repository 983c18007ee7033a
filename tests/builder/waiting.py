"""Waiting for what another task does."""

import asyncio
from collections.abc import Awaitable, Callable

PATIENCE = 120.0


async def until(holds: Callable[[], Awaitable[bool] | bool]) -> None:
    """Until it holds; raises TimeoutError after two minutes."""
    async with asyncio.timeout(PATIENCE):
        while True:
            found = holds()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.05)
