"""Makes sandboxes with bubblewrap on this machine, and installs the packages that a build asks for while it runs."""

import asyncio
import os
import shutil
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from apps.capabilities.egress import EgressProxy

from ..base import InstallFailed, Progress, Purpose, SandboxSpec, SandboxUnavailable
from ..layers.installing import ensure_layer
from ..output import emit
from ..requirements import parse_requirements
from ..store import live_folder, store_folder
from .prepared import CannotPrepare, Prepared, prepare
from .probing import probe
from .session import BubblewrapSandbox
from .spawning import LAYER, Binding

ASK_THE_USER = "A tool reaches only the hosts that its version names and the user approved."
ASK_FOR_NETWORK = "Ask for it with request_network(hosts, why)."
MOST_INSTALLS = 30
"""In one sandbox, since each time leaves another layer on the disk."""


class BubblewrapBackend:
    name = "bubblewrap"

    probe = staticmethod(probe)

    async def create(self, spec: SandboxSpec, *, progress: Progress | None = None) -> BubblewrapSandbox:
        await emit(progress, {"status": "preparing"})
        try:
            prepared = prepare()
        except CannotPrepare as error:
            raise SandboxUnavailable(f"{error} {error.hint}", hint=error.hint) from error
        requirements = parse_requirements(spec.requirements, spec.secrets)
        layer = (
            await ensure_layer(prepared, spec.user_id, requirements, progress) if requirements else None
        )
        limit = spec.limits.transfer_bytes
        if spec.purpose is not Purpose.BUILD:
            proxy = (
                EgressProxy(spec.hosts, transfer_bytes=limit, ask=ASK_THE_USER) if spec.hosts else None
            )
            sandbox = BubblewrapSandbox(prepared, spec.limits, progress, proxy)
            await sandbox.start([Binding(layer, LAYER)] if layer else [], spec.env)
            return sandbox
        # A build always has a proxy, over which pip asks for packages, and a folder that they appear in.
        views = store_folder(prepared.identity) / "views"
        with ExitStack() as held:
            view = held.enter_context(live_folder(views, prepared.identity, writable=False))
            installed = BuildRequirements(prepared, spec, view, requirements, progress)
            if layer is not None:
                await asyncio.to_thread(_link_tree, layer, view)
            proxy = EgressProxy(
                spec.hosts, transfer_bytes=limit, ask=ASK_FOR_NETWORK, install=installed.install
            )
            sandbox = BubblewrapSandbox(prepared, spec.limits, progress, proxy)
            await sandbox.start([Binding(view, LAYER)], spec.env)
            sandbox.held = held.pop_all()
        return sandbox


@dataclass(eq=False)
class BuildRequirements:
    """One build's packages; a further one is resolved together with them. One installation at a time."""

    prepared: Prepared
    spec: SandboxSpec
    view: Path  # the folder that its sandbox sees
    requirements: list[str]
    progress: Progress | None
    installs: int = 0
    alone: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def install(self, text: str) -> str:
        """Raises InvalidInput and InstallFailed."""
        async with self.alone:
            wanted = parse_requirements("\n".join([*self.requirements, text]), self.spec.secrets)
            if wanted == self.requirements:
                return f"Installed: {', '.join(wanted)}"
            if self.installs >= MOST_INSTALLS:
                raise InstallFailed(
                    f"Packages were installed {MOST_INSTALLS} times, more is not allowed."
                )
            self.installs += 1
            layer = await ensure_layer(self.prepared, self.spec.user_id, wanted, self.progress)
            try:
                await asyncio.to_thread(_link_tree, layer, self.view)
            except OSError as error:
                raise InstallFailed(
                    f"The packages could not be shown: {error.strerror or error}."
                ) from error
            self.requirements = wanted
        return f"Installed: {', '.join(wanted)}"


def _link_tree(layer: Path, view: Path) -> None:
    """Hard links cost no room; what has another version is replaced."""
    for place, folders, names in os.walk(layer):
        target = view / Path(place).relative_to(layer)
        for name in folders:
            _clear(target / name, keep_folder=True)
            (target / name).mkdir(exist_ok=True)
        for name in names:
            _clear(target / name)
            source = Path(place) / name
            try:
                os.link(source, target / name, follow_symlinks=False)
            except OSError:  # a file system without links
                shutil.copy2(source, target / name, follow_symlinks=False)


def _clear(place: Path, *, keep_folder: bool = False) -> None:
    """Of two versions of a package the one may have a file or a link where the other has a folder."""
    if place.is_symlink() or not place.is_dir():
        place.unlink(missing_ok=True)
    elif not keep_folder:
        shutil.rmtree(place)
