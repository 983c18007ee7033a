"""One call of a tool from its place in the queue to the end of its sandbox."""

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from django.conf import settings

from apps.core.errors import InvalidInput

from .base import (
    ErrorCode,
    InstallFailed,
    Outcome,
    Progress,
    Purpose,
    RunError,
    Sandbox,
    SandboxGone,
    SandboxSpec,
)
from .fairness import FairQueue
from .output import tell
from .selection import current_backend

PER_CORE = 2

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
        await tell(progress, {"status": "queued", "ahead": ahead})

    backend = await asyncio.to_thread(current_backend)
    async with queue_of(spec.purpose).place(spec.user_id, waiting):
        sandbox = await backend.create(spec, progress=progress)
        try:
            yield sandbox
        finally:
            await asyncio.shield(asyncio.ensure_future(sandbox.close()))


async def run_capability(
    spec: SandboxSpec, files: Mapping[str, str], args: dict[str, Any], progress: Progress | None = None
) -> Outcome:
    """Calls `run(args)` of main.py in a fresh sandbox. What goes wrong is in the outcome; raises SandboxUnavailable, and
    when cancelled CancelledError after everything in the sandbox was killed."""
    try:
        async with open_sandbox(spec, progress) as sandbox:
            return await sandbox.run_capability(files, args)
    except SandboxGone as error:
        return Outcome(ok=False, error=error.error)
    except InstallFailed as error:
        return Outcome(ok=False, error=RunError(ErrorCode.INSTALL_FAILED, error.message))
    except InvalidInput as error:
        code = ErrorCode.INSTALL_FAILED if error.code == "bad_requirements" else ErrorCode.SANDBOX_FAILED
        return Outcome(ok=False, error=RunError(code, error.message))
