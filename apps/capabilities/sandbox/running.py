"""The backend that runs tools, what IZZY_SANDBOX says or the best that works here, and one call of a tool from its place in the
queue to the end of its sandbox. Doctor, /readyz and the instance page say where there is no backend: chat goes on without."""

import asyncio
import os
import shutil
import time
import weakref
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from apps.core.db.pool import shielded
from apps.core.errors import InvalidInput
from apps.core.health import CheckResult, not_set_up
from apps.core.metrics.base import SLOW, counter, histogram
from apps.core.traces import span

from .base import (
    Backend,
    ErrorCode,
    InstallFailed,
    Progress,
    Purpose,
    RunError,
    RunResult,
    Sandbox,
    SandboxGone,
    SandboxSpec,
    SandboxUnavailable,
    emit,
)
from .bubblewrap.prepared import BWRAP

AUTO, NONE = "auto", "none"
RUNS = counter(
    "izzy_sandbox_runs_total",
    "Runs of the user's own tools; the outcome is `ok` or the code of the error.",
    "backend",
    "outcome",
)
SECONDS = histogram(
    "izzy_sandbox_seconds",
    "Time that a sandbox was there, from its making to its end.",
    "backend",
    "purpose",
    buckets=SLOW,
)
WAITED = histogram(
    "izzy_sandbox_wait_seconds", "Time that a call waited for its place.", "purpose", buckets=SLOW
)
BACKENDS = {
    "e2b": "apps.capabilities.sandbox.e2b.backend.E2BBackend",
    "bubblewrap": "apps.capabilities.sandbox.bubblewrap.backend.BubblewrapBackend",
}
SWITCHED_OFF = "Running tools is switched off (IZZY_SANDBOX=none)."
SWITCH_ON = "Set IZZY_SANDBOX=auto and restart."


@cache
def backend_named(name: str) -> Backend:
    """The process's one backend of that name; it is not asked whether it works."""
    backend: Backend = import_string(BACKENDS[name])()
    return backend


def chosen_name() -> str:
    """`e2b`, `bubblewrap` or `none`; `auto` is E2B where it has a key."""
    name: str = settings.IZZY_SANDBOX
    if name != AUTO:
        return name
    return "e2b" if settings.E2B_API_KEY else "bubblewrap"


def current_backend() -> Backend:
    """Raises SandboxUnavailable, with the cause and what to do, where there is none: nothing runs unsandboxed."""
    name = chosen_name()
    if name == NONE:
        raise SandboxUnavailable(SWITCHED_OFF, hint=SWITCH_ON)
    backend = backend_named(name)
    found = backend.probe()
    if not found.ok:
        raise SandboxUnavailable(f"{found.message} {found.hint}".strip(), hint=found.hint)
    return backend


WITH_A_SANDBOX = "With a sandbox your own tools run, and Izzy builds new ones."


def check_sandbox() -> CheckResult:
    name = chosen_name()
    if name == NONE:
        return not_set_up(SWITCHED_OFF, gives=WITH_A_SANDBOX, how=SWITCH_ON)
    found = backend_named(name).probe()
    if (
        not found.ok
        and settings.IZZY_SANDBOX == AUTO
        and name == "bubblewrap"
        and not shutil.which(BWRAP)
    ):
        return not_set_up(found.message, gives=WITH_A_SANDBOX, how=found.hint)
    return found


PER_CORE = 2

Waited = Callable[[int], Awaitable[None]]
"""Called with how many come before, once, where a call has to wait."""


class FairQueue:
    """Belongs to one event loop. After a user's call has begun the turn goes to the next user who waits; a user who is
    alone uses all places. So with N users each begins at least every Nth call, however many the others have."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: OrderedDict[UUID, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def place(self, user_id: UUID, on_wait: Waited | None = None) -> AsyncIterator[None]:
        """Held as long as the block runs. Cancelling while waiting gives the turn up."""
        if self._free and not self._waiting:
            self._free -= 1
        else:
            await self._turn(user_id, on_wait)
        try:
            yield
        finally:
            self._leave()

    async def _turn(self, user_id: UUID, on_wait: Waited | None) -> None:
        ahead = self.waiting
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user_id, deque()).append(turn)
        try:
            if on_wait is not None:
                await on_wait(ahead)
            await turn
        except asyncio.CancelledError:
            queue = self._waiting.get(user_id, deque())
            if turn.done() and not turn.cancelled():
                self._leave()  # its turn came in the same moment
            elif turn in queue:
                queue.remove(turn)
                if not queue:
                    del self._waiting[user_id]
            raise

    def _leave(self) -> None:
        self._free += 1
        while self._free and self._waiting:
            user_id, queue = self._waiting.popitem(last=False)
            turn = queue.popleft()
            if queue:
                self._waiting[user_id] = queue  # at the end: the others come first
            if not turn.done():
                self._free -= 1
                turn.set_result(None)


_queues: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Purpose, FairQueue]]" = (
    weakref.WeakKeyDictionary()
)
"""Of each event loop, since a future belongs to one; in a server there is one loop. Builds have places of their own: one
waits most of its time for the model, and its trial runs need places of runs."""


def queue_of(purpose: Purpose) -> FairQueue:
    queues = _queues.setdefault(asyncio.get_running_loop(), {})
    if purpose not in queues:
        queues[purpose] = FairQueue(places())
    return queues[purpose]


def places() -> int:
    """How many sandboxes of each purpose run at once in this process."""
    named: int = settings.IZZY_SANDBOXES
    return named or PER_CORE * (os.cpu_count() or 1)


@asynccontextmanager
async def open_sandbox(spec: SandboxSpec, progress: Progress | None = None) -> AsyncIterator[Sandbox]:
    """A sandbox from the chosen backend, closed whatever happens. Raises SandboxUnavailable, InstallFailed, InvalidInput
    (requirements, hosts)."""

    async def waiting(ahead: int) -> None:
        await emit(progress, {"status": "queued", "ahead": ahead})

    backend = await asyncio.to_thread(current_backend)
    asked = time.monotonic()
    async with queue_of(spec.purpose).place(spec.user_id, waiting):
        began = time.monotonic()
        WAITED.observe(began - asked, spec.purpose)
        traced = span("sandbox", {"izzy.purpose": spec.purpose.value, "izzy.backend": backend.name})
        try:
            with traced:
                sandbox = await backend.create(spec, progress=progress)
                try:
                    yield sandbox
                finally:
                    await shielded(sandbox.close())
        finally:
            SECONDS.observe(time.monotonic() - began, backend.name, spec.purpose)


async def run_capability(
    spec: SandboxSpec, files: Mapping[str, str], args: dict[str, Any], progress: Progress | None = None
) -> RunResult:
    """Calls `run(args)` of main.py in a fresh sandbox. What goes wrong is in the result; raises SandboxUnavailable, and
    when cancelled CancelledError after everything in the sandbox was killed."""
    try:
        async with open_sandbox(spec, progress) as sandbox:
            result = await sandbox.run_capability(files, args)
    except SandboxGone as error:
        result = RunResult(error=error.error)
    except InstallFailed as error:
        result = RunResult(error=RunError(ErrorCode.INSTALL_FAILED, error.message))
    except InvalidInput as error:
        code = ErrorCode.INSTALL_FAILED if error.code == "bad_requirements" else ErrorCode.SANDBOX_FAILED
        result = RunResult(error=RunError(code, error.message))
    RUNS.add(chosen_name(), result.error.code if result.error else "ok")
    return result
