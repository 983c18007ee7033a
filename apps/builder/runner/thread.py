"""The builds' event loop as a companion of the worker: a thread beside its sweeps."""

import asyncio
import logging
import threading

from django.db import connections

from apps.builder.runner.pool import BuildPool

logger = logging.getLogger(__name__)

JOIN_SECONDS = 12.0


class BuildThread(threading.Thread):
    """Several builds at once, which mostly wait; sweeps go on in a thread of their own meanwhile."""

    def __init__(self) -> None:
        super().__init__(name="builds", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pool: BuildPool | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._main())
        except Exception:
            logger.exception("the builds' thread ended")
        finally:
            connections.close_all()

    async def _main(self) -> None:
        self._loop, self._pool = asyncio.get_running_loop(), BuildPool()
        await self._pool.run()

    def stop(self) -> None:
        """Ends its builds' tasks and sandboxes and gives the builds back."""
        if self._loop is not None and self._pool is not None and self.is_alive():
            self._loop.call_soon_threadsafe(self._pool.stop)
            self.join(JOIN_SECONDS)
