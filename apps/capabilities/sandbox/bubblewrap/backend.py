"""Sandboxes made with bubblewrap, on this machine."""

import asyncio
import logging
from contextlib import ExitStack
from pathlib import Path

from apps.capabilities.egress import EgressProxy
from apps.capabilities.sandbox.base import Progress, Purpose, SandboxSpec, SandboxUnavailable
from apps.capabilities.sandbox.layers.installing import ensure_layer
from apps.capabilities.sandbox.output import tell
from apps.capabilities.sandbox.requirements import parse_requirements
from apps.capabilities.sandbox.store import live_folder, store_folder
from apps.core.health import CheckResult

from .arguments import LAYER, Binding
from .building import BuildRequirements
from .prepared import CannotPrepare, Prepared, prepare
from .probing import probe
from .process import SandboxProcess
from .session import BubblewrapSandbox

logger = logging.getLogger(__name__)

ASK_THE_USER = "A tool reaches only the hosts that its version names and the user approved."
ASK_FOR_NETWORK = "Ask for it with request_network(hosts, why)."


class BubblewrapBackend:
    name = "bubblewrap"

    def probe(self) -> CheckResult:
        return probe()

    async def create(self, spec: SandboxSpec, *, progress: Progress | None = None) -> BubblewrapSandbox:
        await tell(progress, {"status": "preparing"})
        try:
            prepared = prepare()
        except CannotPrepare as error:
            raise SandboxUnavailable(f"{error} {error.hint}", hint=error.hint) from error
        requirements = parse_requirements(spec.requirements, spec.secrets)
        layer = await ensure_layer(prepared, spec.user_id, requirements, progress) if requirements else None
        if spec.purpose is Purpose.BUILD:
            return await self._for_build(prepared, spec, layer, requirements, progress)
        bindings = [Binding(layer, LAYER)] if layer else []
        hosts = spec.hosts
        limit = spec.limits.transfer_bytes
        proxy = EgressProxy(hosts, transfer_bytes=limit, ask=ASK_THE_USER) if hosts else None
        process = await _started(prepared, spec, bindings, proxied=proxy is not None)
        return await _begun(BubblewrapSandbox(spec, process, progress=progress, proxy=proxy))

    async def _for_build(
        self,
        prepared: Prepared,
        spec: SandboxSpec,
        layer: Path | None,
        requirements: list[str],
        progress: Progress | None,
    ) -> BubblewrapSandbox:
        """Always with a proxy, over which pip asks for packages, and with a folder that they appear in."""
        held = ExitStack()
        views = store_folder(prepared.identity) / "views"
        view = held.enter_context(live_folder(views, prepared.identity, writable=False))
        installed = BuildRequirements(prepared, spec, view, requirements, progress)
        try:
            if layer is not None:
                await installed.show(layer)
            proxy = EgressProxy(
                spec.hosts,
                transfer_bytes=spec.limits.transfer_bytes,
                ask=ASK_FOR_NETWORK,
                install=installed.install,
            )
            process = await _started(prepared, spec, [Binding(view, LAYER)], proxied=True)
        except BaseException:
            held.close()
            raise
        return await _begun(BubblewrapSandbox(spec, process, progress=progress, proxy=proxy, held=held))


async def _started(
    prepared: Prepared, spec: SandboxSpec, bindings: list[Binding], *, proxied: bool
) -> SandboxProcess:
    process = SandboxProcess(prepared, spec.limits)
    try:
        await process.start(bindings, proxied=proxied)
    except OSError as error:
        logger.warning("a sandbox did not start: %s", error)
        raise SandboxUnavailable(f"The sandbox did not start: {error}") from error
    return process


async def _begun(sandbox: BubblewrapSandbox) -> BubblewrapSandbox:
    try:
        await sandbox.begin()
    except BaseException:
        await asyncio.shield(asyncio.ensure_future(sandbox.close()))
        raise
    return sandbox
