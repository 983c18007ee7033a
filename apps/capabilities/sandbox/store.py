"""Where sandboxes keep what outlives a run: installed requirements, and the files that every sandbox gets to see.

store/inside/HASH     what is bound into each sandbox: its /etc and the runner
store/layers/USER/KEY installed requirements of one user
store/staging/NAME    installations under way
store/views/NAME      what the sandbox of a build sees of its requirements
"""

import hashlib
import os
import shutil
import time
from functools import cache
from pathlib import Path

from django.conf import settings

from .bubblewrap.identity import Identity

CACHE_FOLDER = Path("/var/cache/izzy")
ABANDONED_SECONDS = 3600
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


def own_folder(parent: Path, name: str, identity: Identity) -> Path:
    """A new folder that the sandbox's user may write to, and nobody else may read."""
    folder = parent / name
    folder.mkdir(mode=0o700)
    if identity.dropped:
        os.chown(folder, identity.uid, identity.gid)
    return folder


def remove_abandoned(identity: Identity) -> int:
    """Removes what processes that are gone left behind; returns how many folders."""
    removed = 0
    for name in LIVE_FOLDERS:
        for folder in (store_folder(identity) / name).iterdir():
            if not _in_use(folder):
                shutil.rmtree(folder, ignore_errors=True)
                removed += 1
    return removed


def _in_use(folder: Path) -> bool:
    """Names end in the number of the process that made them; a number may have been given again, so age counts too."""
    try:
        owner = int(folder.name.rpartition("-")[2])
        os.kill(owner, 0)
    except ValueError:
        return False
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:
        return time.time() - folder.stat().st_mtime < 2 * ABANDONED_SECONDS
    except OSError:
        return False
