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

from ..bubblewrap.prepared import CannotPrepare, Prepared, prepare
from ..store import remove_abandoned, store_folder

DAY_SECONDS = 86_400


def layer_folder(prepared: Prepared, user_id: UUID, requirements: Sequence[str]) -> Path:
    """Where the layer lies or will lie: one for each user, list of requirements, Python ABI and platform."""
    made_of = "\n".join([prepared.abi, str(prepared.interpreter.path), *requirements])
    key = hashlib.sha256(made_of.encode()).hexdigest()[:32]
    return _layers_of(user_id, prepared) / key


def _layers_of(user_id: UUID, prepared: Prepared) -> Path:
    return (
        store_folder(prepared.identity) / "layers" / salted_hmac("izzy.layers", user_id.hex).hexdigest()[:24]
    )


def mark_used(layer: Path) -> bool:
    """Its time of change is when it was last used. False where there is no such layer."""
    try:
        os.utime(layer)
    except FileNotFoundError:
        return False
    return True


def layers_forget(user_id: UUID, prepared: Prepared) -> int:
    """Remove all layers of a user; returns how many there were."""
    folder = _layers_of(user_id, prepared)
    number = sum(place.is_dir() for place in folder.iterdir()) if folder.is_dir() else 0
    shutil.rmtree(folder, ignore_errors=True)
    return number


def remove_unused(prepared: Prepared, *, days: float) -> int:
    """Remove the layers that no run has used for so long; returns how many."""
    oldest = time.time() - days * DAY_SECONDS
    removed = 0
    for user in (store_folder(prepared.identity) / "layers").iterdir():
        for layer in filter(Path.is_dir, user.iterdir()):
            removed += _removed(layer, oldest)
    return removed


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


def remove_outdated(prepared: Prepared, *, keep: Path, days: float) -> int:
    """Remove what earlier versions bound into sandboxes, once it is so old that none of them still runs."""
    oldest = time.time() - days * DAY_SECONDS
    removed = 0
    for found in prepared.inside.parent.iterdir():
        if found in {prepared.inside, prepared.certificates, keep} or found.stat().st_mtime >= oldest:
            continue
        if found.is_dir():
            shutil.rmtree(found, ignore_errors=True)
        else:
            found.unlink()
        removed += 1
    return removed


logger = logging.getLogger(__name__)


def sweep() -> None:
    from .installing import readable_uv  # here: it loads the proxy, which most commands do without

    try:
        prepared = prepare()
    except CannotPrepare:
        return  # there are no local sandboxes
    abandoned = remove_abandoned(prepared.identity)
    unused = remove_unused(prepared, days=settings.IZZY_LAYER_DAYS)
    remove_outdated(prepared, keep=readable_uv(prepared), days=settings.IZZY_LAYER_DAYS)
    if abandoned or unused:
        logger.info("sandboxes: removed %s abandoned folders, %s unused requirements", abandoned, unused)


def user_forget(user_id: UUID) -> int:
    """Remove the requirements that a user's tools had installed; returns how many sets there were."""
    try:
        return layers_forget(user_id, prepare())
    except CannotPrepare:
        return 0
