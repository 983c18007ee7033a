"""Layers on disk: found by what they hold, kept while they are used, cleared away in the background."""

import hashlib
import logging
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.utils.crypto import salted_hmac

from ..bubblewrap.identity import sandbox_identity
from ..bubblewrap.prepared import CannotPrepare, Prepared, prepare
from ..store import remove_abandoned, store_folder

logger = logging.getLogger(__name__)

DAY_SECONDS = 86_400


def layer_folder(prepared: Prepared, user_id: UUID, requirements: Sequence[str]) -> Path:
    """Where the layer lies or will lie: one for each user, list of requirements, Python ABI and platform."""
    made_of = "\n".join([prepared.abi, str(prepared.interpreter.path), *requirements])
    key = hashlib.sha256(made_of.encode()).hexdigest()[:32]
    return _layers_of(user_id, prepared) / key


def _layers_of(user_id: UUID, prepared: Prepared) -> Path:
    return store_folder(prepared.identity) / "layers" / layers_name(user_id)


def layers_name(user_id: UUID) -> str:
    """The name that a user has among the layers."""
    return salted_hmac("izzy.layers", user_id.hex).hexdigest()[:24]


def layer_owners() -> set[str]:
    """The names of all users who have layers here."""
    try:
        folder = store_folder(sandbox_identity()) / "layers"
        return {each.name for each in folder.iterdir() if each.is_dir()}
    except (OSError, CannotPrepare):  # there are no local sandboxes
        return set()


def layers_remove(name: str) -> None:
    """Removes all layers under one of these names."""
    folder = store_folder(sandbox_identity()) / "layers"
    shutil.rmtree(folder / Path(name).name, ignore_errors=True)


def mark_used(layer: Path) -> bool:
    """Its time of change is when it was last used. False where there is no such layer."""
    try:
        os.utime(layer)
    except FileNotFoundError:
        return False
    return True


def sweep() -> None:
    """Clears away folders of processes that are gone, and requirements that nobody uses any more."""
    from .installing import readable_uv  # here: it loads the proxy, which most commands do without

    try:
        prepared = prepare()
    except CannotPrepare:
        return  # there are no local sandboxes
    abandoned = remove_abandoned(prepared.identity)
    oldest = time.time() - settings.IZZY_LAYER_DAYS * DAY_SECONDS
    users = (store_folder(prepared.identity) / "layers").iterdir()
    layers = [layer for user in users for layer in user.iterdir() if layer.is_dir()]
    unused = sum(_removed(layer, oldest) for layer in layers)
    # What earlier versions bound into sandboxes goes once it is so old that none of them still runs.
    keep = {prepared.inside, prepared.certificates, readable_uv(prepared)}
    for found in prepared.inside.parent.iterdir():
        if found in keep or found.stat().st_mtime >= oldest:
            continue
        if found.is_dir():
            shutil.rmtree(found, ignore_errors=True)
        else:
            found.unlink()
    if abandoned or unused:
        logger.info("sandboxes: removed %s abandoned folders, %s unused requirements", abandoned, unused)


def _removed(layer: Path, oldest: float) -> bool:
    """Out of its place first, so that no sandbox starts with half of it."""
    doomed = layer.with_name(f".{layer.name}-{os.getpid()}")
    try:
        if layer.stat().st_mtime >= oldest:
            return False
        layer.rename(doomed)
    except FileNotFoundError:  # another process was first
        return False
    shutil.rmtree(doomed, ignore_errors=True)
    return True


def user_forget(user_id: UUID) -> int:
    """Remove the requirements that a user's tools had installed; returns how many sets there were."""
    try:
        folder = _layers_of(user_id, prepare())
    except CannotPrepare:
        return 0
    number = sum(place.is_dir() for place in folder.iterdir()) if folder.is_dir() else 0
    shutil.rmtree(folder, ignore_errors=True)
    return number
