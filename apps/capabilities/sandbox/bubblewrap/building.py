"""Packages that a build asks for while it runs: installed as layers, shown in the folder that its sandbox sees."""

import asyncio
import os
import shutil
from pathlib import Path
from uuid import UUID

from apps.capabilities.sandbox.base import Progress
from apps.capabilities.sandbox.layers.installing import ensure_layer
from apps.capabilities.sandbox.requirements import parse_requirements

from .prepared import Prepared


class BuildRequirements:
    """What one build has so far; a further package is resolved together with it. One installation at a time."""

    def __init__(
        self,
        prepared: Prepared,
        user_id: UUID,
        view: Path,
        requirements: list[str],
        progress: Progress | None,
    ) -> None:
        self._prepared = prepared
        self._user_id = user_id
        self._view = view
        self._requirements = requirements
        self._progress = progress
        self._alone = asyncio.Lock()

    async def install(self, text: str) -> str:
        """Raises InvalidInput and InstallFailed."""
        async with self._alone:
            wanted = parse_requirements("\n".join([*self._requirements, text]))
            layer = await ensure_layer(self._prepared, self._user_id, wanted, self._progress)
            await self.show(layer)
            self._requirements = wanted
        return f"Installed: {', '.join(wanted)}"

    async def show(self, layer: Path) -> None:
        await asyncio.to_thread(_link_tree, layer, self._view)


def _link_tree(layer: Path, view: Path) -> None:
    """Hard links cost no room; what has another version is replaced."""
    for place, folders, names in os.walk(layer):
        target = view / Path(place).relative_to(layer)
        for name in folders:
            (target / name).mkdir(exist_ok=True)
        for name in names:
            (target / name).unlink(missing_ok=True)
            _link(Path(place) / name, target / name)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # a file system without links
        shutil.copy2(source, target, follow_symlinks=False)
