"""Makes sandboxes at E2B with their network rules, and cleans up after a process that died."""

import asyncio
import hashlib
import importlib.util
import logging
import os
import socket
from collections.abc import Collection
from typing import Any

from django.conf import settings

from apps.core.errors import IzzyError
from apps.core.health import CheckResult

from ..base import (
    Progress,
    Purpose,
    Sandbox,
    SandboxGone,
    SandboxSpec,
    SandboxUnavailable,
    emit,
)
from ..requirements import PUBLIC_FILES, PUBLIC_INDEX, parse_requirements
from .sandbox import E2BSandbox, failed, network_for

logger = logging.getLogger(__name__)

INSTALL_SECONDS = 300
SPARE_SECONDS = 30
"""By which E2B ends a sandbox later than Izzy would: the last resort, also when Izzy has died."""
REQUEST_SECONDS = 30.0


class E2BBackend:
    """`Backend` over the SDK; see `apps.capabilities.sandbox.e2b` for what its limits mean."""

    name = "e2b"

    def probe(self) -> CheckResult:
        """Whether a key and the SDK are there; E2B is not asked, which would take a second and cost a sandbox."""
        if not settings.E2B_API_KEY:
            return CheckResult(
                False, "E2B has no key.", "Set E2B_API_KEY, or IZZY_SANDBOX=auto for another sandbox."
            )
        if importlib.util.find_spec("e2b_code_interpreter") is None:
            return CheckResult(
                False, "The package e2b-code-interpreter is missing.", "Run `make setup`."
            )
        return CheckResult(True, "Tools run in E2B's cloud.")

    async def create(self, spec: SandboxSpec, *, progress: Progress | None = None) -> Sandbox:
        """See `Backend.create`. Requirements are installed with the package index reachable, before anything else is."""
        await emit(progress, {"status": "preparing"})
        lines = parse_requirements(spec.requirements, spec.secrets)
        index = {PUBLIC_INDEX, PUBLIC_FILES, *settings.IZZY_PACKAGE_HOSTS}
        # A build tries packages out as it goes; a run has what it named, and nothing of the index any more.
        hosts = spec.hosts | index if spec.purpose == Purpose.BUILD else spec.hosts
        remote = await self._created(spec, index if lines else hosts, installs=bool(lines))
        sandbox = E2BSandbox(remote, spec, progress, hosts)
        try:
            if lines:
                await sandbox.install(lines, seconds=INSTALL_SECONDS)
            await sandbox.begin(SPARE_SECONDS)
        except BaseException as error:
            await sandbox.close()
            if isinstance(error, IzzyError) or not isinstance(error, Exception):
                raise
            raise SandboxGone(failed(error)) from error  # the SDK's errors have no common base
        return sandbox

    async def _created(self, spec: SandboxSpec, hosts: Collection[str], *, installs: bool) -> Any:
        sdk = await asyncio.to_thread(_sdk)
        seconds = spec.limits.wall_seconds + SPARE_SECONDS + (INSTALL_SECONDS if installs else 0)
        making = asyncio.ensure_future(
            sdk.AsyncSandbox.create(
                api_key=settings.E2B_API_KEY,
                timeout=round(seconds),
                metadata={  # so that another process can tell what a dead one has left
                    "izzy_instance": _instance(),
                    "izzy_machine": socket.gethostname(),
                    "izzy_process": str(os.getpid()),
                },
                network=network_for(hosts) | {"allow_public_traffic": False},
                lifecycle={"on_timeout": "kill"},
                request_timeout=REQUEST_SECONDS,
            )
        )
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(_kill_late)
            raise
        except Exception as error:
            import e2b

            message = f"E2B could not make a sandbox ({type(error).__name__}). Try again; see https://status.e2b.dev."
            if isinstance(error, e2b.AuthenticationException):
                message = "E2B does not accept the key. Look at E2B_API_KEY."
            if isinstance(error, e2b.RateLimitException):
                message = "E2B has no room for another sandbox right now. Try again in a moment."
            raise SandboxUnavailable(message) from error


def _kill_late(making: "asyncio.Future[Any]") -> None:
    """A sandbox that was made when nobody wanted it any more."""
    if making.cancelled() or making.exception():
        return
    killing = asyncio.ensure_future(making.result().kill())
    killing.add_done_callback(lambda done: done.cancelled() or done.exception())


def _sdk() -> Any:
    """Takes a second or so to import."""
    import e2b_code_interpreter  # type: ignore[import-untyped]

    return e2b_code_interpreter


def _instance() -> str:
    return hashlib.sha256(f"e2b:{settings.SECRET_KEY}".encode()).hexdigest()[:16]


async def kill_orphans() -> int:
    """Ends the sandboxes of this instance whose process on this machine is gone; returns how many."""
    sdk = await asyncio.to_thread(_sdk)
    query = sdk.SandboxQuery(
        metadata={"izzy_instance": _instance(), "izzy_machine": socket.gethostname()}
    )
    pages = sdk.AsyncSandbox.list(
        query=query, api_key=settings.E2B_API_KEY, request_timeout=REQUEST_SECONDS
    )
    killed = 0
    while pages.has_next:
        for found in await pages.next_items():
            try:
                os.kill(int(found.metadata.get("izzy_process", "")), 0)
            except PermissionError:
                continue  # it lives, as another user's
            except (ProcessLookupError, ValueError):
                killed += bool(
                    await sdk.AsyncSandbox.kill(found.sandbox_id, api_key=settings.E2B_API_KEY)
                )
    return killed


def sweep_orphans() -> None:
    """For the worker: what a process that was killed has left at E2B, long before E2B itself ends it."""
    if not settings.E2B_API_KEY or settings.IZZY_SANDBOX not in {"auto", "e2b"}:
        return
    if killed := asyncio.run(kill_orphans()):
        logger.warning("ended %d sandboxes that dead processes had left at E2B", killed)
