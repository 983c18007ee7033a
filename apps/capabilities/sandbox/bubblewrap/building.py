"""Packages that a build asks for while it runs: installed as layers, shown in the folder that its sandbox sees."""

import asyncio
import os
import shutil
from pathlib import Path

from apps.capabilities.sandbox.base import InstallFailed, Progress, SandboxSpec
from apps.capabilities.sandbox.layers.installing import ensure_layer
from apps.capabilities.sandbox.requirements import parse_requirements

from .prepared import Prepared

MOST_INSTALLS = 30
"""In one sandbox, since each time leaves another layer on the disk."""


class BuildRequirements:
    """One build's packages; a further one is resolved together with them. One installation at a time."""

    def __init__(
        self,
        prepared: Prepared,
        spec: SandboxSpec,
        view: Path,
        requirements: list[str],
        progress: Progress | None,
    ) -> None:
        self._prepared = prepared
        self._spec = spec
        self._view = view
        self._requirements = requirements
        self._progress = progress
        self._left = MOST_INSTALLS
        self._alone = asyncio.Lock()

    async def install(self, text: str) -> str:
        """Raises InvalidInput and InstallFailed."""
        async with self._alone:
            wanted = parse_requirements("\n".join([*self._requirements, text]), self._spec.secrets)
            if wanted == self._requirements:
                return f"Installed: {', '.join(wanted)}"
            if not self._left:
                raise InstallFailed(f"Packages were installed {MOST_INSTALLS} times, more is not allowed.")
            self._left -= 1
            layer = await ensure_layer(self._prepared, self._spec.user_id, wanted, self._progress)
            try:
                await self.show(layer)
            except OSError as error:
                raise InstallFailed(f"The packages could not be shown: {error.strerror or error}.") from error
            self._requirements = wanted
        return f"Installed: {', '.join(wanted)}"

    async def show(self, layer: Path) -> None:
        await asyncio.to_thread(_link_tree, layer, self._view)


def _link_tree(layer: Path, view: Path) -> None:
    """Hard links cost no room; what has another version is replaced."""
    for place, folders, names in os.walk(layer):
        target = view / Path(place).relative_to(layer)
        for name in folders:
            _clear(target / name, keep_folder=True)
            (target / name).mkdir(exist_ok=True)
        for name in names:
            _clear(target / name)
            _link(Path(place) / name, target / name)


def _clear(place: Path, *, keep_folder: bool = False) -> None:
    """Of two versions of a package the one may have a file or a link where the other has a folder."""
    if place.is_symlink() or not place.is_dir():
        place.unlink(missing_ok=True)
    elif not keep_folder:
        shutil.rmtree(place)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # a file system without links
        shutil.copy2(source, target, follow_symlinks=False)
