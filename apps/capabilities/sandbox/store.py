"""Where sandboxes keep what outlives a run: installed requirements, and the files that every sandbox gets to see.

store/inside/HASH     what is bound into each sandbox: its /etc and the runner
store/layers/USER/KEY installed requirements of one user
store/staging/NAME    installations under way
store/views/NAME      what the sandbox of a build sees of its requirements
"""

import fcntl
import hashlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from django.conf import settings

from .bubblewrap.identity import Identity

CACHE_FOLDER = Path("/var/cache/izzy")
YOUNG_SECONDS = 10
LIVE_FOLDERS = ("staging", "views")


@cache
def store_folder(identity: Identity) -> Path:
    """Made if missing. Raises OSError."""
    folder = _place(identity)
    for part in (folder, folder / "inside", folder / "layers", *(folder / name for name in LIVE_FOLDERS)):
        part.mkdir(parents=True, exist_ok=True)
        part.chmod(0o711 if identity.dropped else 0o700)
    return folder


def _place(identity: Identity) -> Path:
    if settings.IZZY_SANDBOX_DIR:
        return Path(settings.IZZY_SANDBOX_DIR).expanduser().resolve()
    data = Path(settings.IZZY_DATA_DIR)
    data.mkdir(parents=True, exist_ok=True)
    if not identity.dropped or identity.may_enter(data):
        return data / "sandbox"
    return CACHE_FOLDER / hashlib.sha256(str(data.resolve()).encode()).hexdigest()[:12]


@contextmanager
def live_folder(parent: Path, identity: Identity, *, writable: bool = True) -> Iterator[Path]:
    """A new folder, removed at the end of the block. `writable`: the sandbox's user owns it, and nobody else may look.

    It is locked as long as it is in use: a lock goes with the process that holds it, in whatever container that runs."""
    folder = parent / secrets.token_hex(8)
    folder.mkdir(mode=0o700)
    if not writable:
        folder.chmod(0o755)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if writable and identity.dropped:
            os.chown(folder, identity.uid, identity.gid)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def remove_abandoned(identity: Identity) -> int:
    """Removes what processes that are gone left behind; returns how many folders."""
    return sum(
        _removed(folder) for name in LIVE_FOLDERS for folder in (store_folder(identity) / name).iterdir()
    )


def _removed(folder: Path) -> bool:
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # another process was first
        return False
    try:
        if time.time() - folder.stat().st_mtime < YOUNG_SECONDS:  # it may just be about to be locked
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except (BlockingIOError, FileNotFoundError):
        return False
    finally:
        os.close(descriptor)
    return True
