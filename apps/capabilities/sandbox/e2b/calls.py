"""Handles every call of a sandbox at E2B: its end, time limits, floods, cancellation."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import Any

from apps.core.errors import InvalidInput

from ..base import ErrorCode, Progress, RunError, SandboxGone, SandboxSpec
from .answers import Problem, timed_out
from .output import Stream

logger = logging.getLogger(__name__)

KILL_SECONDS = 10.0
GRACE_SECONDS = 5.0
"""Beyond a time limit, for the sandbox to say itself that it was reached."""


class Calls:
    """One remote sandbox (an object of the SDK) and what is asked of it."""

    def __init__(
        self, remote: Any, spec: SandboxSpec, progress: Progress | None, hosts: Collection[str]
    ) -> None:
        self._hosts = frozenset(hosts)
        self._remote = remote
        self._spec = spec
        self._progress = progress
        self._ends = float("inf")
        self._gone: RunError | None = None
        self._closing = asyncio.Lock()
        self._ending: asyncio.Future[RunError] | None = None

    @property
    def id(self) -> str:
        """As E2B names it."""
        return str(self._remote.sandbox_id)

    async def close(self) -> None:
        """See `base.Sandbox`. What cannot be ended now is ended by E2B when its time is over."""
        self._gone = self._gone or RunError(ErrorCode.CANCELLED, "The sandbox was closed.")
        async with self._closing:
            if self._remote is None:
                return
            try:
                await asyncio.wait_for(asyncio.shield(self._remote.kill()), KILL_SECONDS)
            except Exception as error:  # noqa: BLE001  whatever the SDK raises: E2B's own time limit remains
                logger.warning("sandbox %s could not be ended: %s", self.id, type(error).__name__)
                return
            self._remote = None

    def _streams(self) -> tuple[Stream, Stream, Callable[[], int]]:
        began = time.monotonic()
        limits = self._spec.limits
        return (
            Stream("stdout", limits, self._progress, self._flooded),
            Stream("stderr", limits, self._progress, self._flooded),
            lambda: round((time.monotonic() - began) * 1000),
        )

    def _flooded(self) -> None:
        """Ending the sandbox ends the call under way; raising within the SDK's own tasks would not, reliably."""
        flood = self._spec.limits.flood_bytes
        why = RunError(ErrorCode.TOO_MUCH_OUTPUT, f"More than {flood:,} bytes were written, so it was ended.")
        self._ending = asyncio.ensure_future(self._end(why))

    def _seconds(self, wish: float | None) -> float:
        """Never more than the sandbox has left."""
        left = self._ends - time.monotonic()
        return max(0.1, left if wish is None else min(wish, left))

    @asynccontextmanager
    async def _call(self, seconds: float, *streams: Stream) -> "AsyncIterator[Problem]":
        """Around everything that is asked of the sandbox: its end, time limits, floods, cancellation."""
        if self._gone is not None or self._remote is None:
            raise SandboxGone(self._gone or RunError(ErrorCode.CANCELLED, "The sandbox was closed."))
        problem = Problem()
        try:
            async with asyncio.timeout(seconds + GRACE_SECONDS):
                yield problem
        except asyncio.CancelledError:
            await asyncio.shield(self._end(RunError(ErrorCode.CANCELLED, "The run was cancelled.")))
            raise
        except (InvalidInput, SandboxGone):
            raise
        except Exception as error:  # noqa: BLE001  the SDK's errors have no common base
            problem.error = await self._failed(error, seconds)
        for stream in streams:
            await stream.finish()

    async def _failed(self, error: Exception, seconds: float) -> RunError:
        import e2b

        if self._gone is not None:
            return self._gone
        if time.monotonic() >= self._ends:
            return await self._end(timed_out(self._spec.limits.wall_seconds))
        gone = (e2b.SandboxNotRunningException, e2b.SandboxNotFoundException)
        if isinstance(error, e2b.TimeoutException) and not isinstance(error, gone) and await self._runs():
            return timed_out(seconds)
        if isinstance(error, TimeoutError):
            return await self._end(timed_out(seconds))
        logger.warning("E2B failed: %s: %s", type(error).__name__, error)
        return await self._end(
            RunError(ErrorCode.SANDBOX_FAILED, f"The sandbox failed ({type(error).__name__}). Run it again.")
        )

    async def _runs(self) -> bool:
        """The SDK tells of code that takes too long and of a sandbox that is no more by the same exception."""
        try:
            return bool(await self._remote.is_running(request_timeout=KILL_SECONDS))
        except Exception:  # noqa: BLE001  the SDK's errors have no common base; what cannot be asked is not there
            return False

    async def _end(self, why: RunError) -> RunError:
        self._gone = self._gone or why
        await self.close()
        return why

    async def _tell(self, status: str) -> None:
        if self._progress:
            await self._progress({"status": status})
