"""Where sandboxes keep what outlives a run: installed requirements, and the files that every sandbox gets to see.

store/inside/HASH     what is bound into each sandbox: its /etc and the runner
store/layers/OWNER/KEY installed requirements of one user, who is named by a keyed hash
store/staging/NAME    installations under way
store/views/NAME      what the sandbox of a build sees of its requirements

Every sandbox can read in its mount table where they lie: so no part of that path names a user, an id or the data directory.
"""

import contextlib
import fcntl
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from django.conf import settings

from .bubblewrap.identity import Identity

CACHE_FOLDER = Path("/var/cache/izzy")
SHARED_FOLDERS = (CACHE_FOLDER, Path("/var/tmp"))  # noqa: S108  a folder of our own within, with a random name
UNUSED_SECONDS = 20 * 86_400  # systemd begins to take files out of /var/tmp after 30 days
YOUNG_SECONDS = 10
LIVE_FOLDERS = ("staging", "views")


@cache
def store_folder(identity: Identity) -> Path:
    """Made if missing. Raises OSError."""
    folder = _place(identity)
    for part in (
        folder,
        folder / "inside",
        folder / "layers",
        *(folder / name for name in LIVE_FOLDERS),
    ):
        part.mkdir(parents=True, exist_ok=True)
        part.chmod(0o711 if identity.dropped else 0o700)
    return folder


def _place(identity: Identity) -> Path:
    if settings.IZZY_SANDBOX_DIR:
        return Path(settings.IZZY_SANDBOX_DIR).expanduser().resolve()
    data = Path(settings.IZZY_DATA_DIR)
    data.mkdir(parents=True, exist_ok=True)
    if identity.dropped:
        return CACHE_FOLDER / hashlib.sha256(str(data.resolve()).encode()).hexdigest()[:12]
    with _locked(data):
        return _shared_place(data / "sandbox")


def _shared_place(link: Path) -> Path:
    """The folder to which `link` points; a new one where there is none that is surely ours and whole. The data directory's
    own folder where no other place will do."""
    if link.is_symlink():
        place = link.readlink()
        if _is_ours(place):
            return _kept(place)
        link.unlink()
    parent = next((folder for folder in SHARED_FOLDERS if _may_hold(folder)), None)
    if parent is None:
        return link
    shutil.rmtree(link, ignore_errors=True)  # where it lay until now: everything in it can be made again
    place = Path(tempfile.mkdtemp(prefix="izzy-", dir=parent))
    link.symlink_to(place)
    return _kept(place)


def _is_ours(place: Path) -> bool:
    try:
        found = place.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        return False
    if time.time() - found.st_mtime < UNUSED_SECONDS:
        return True
    shutil.rmtree(place, ignore_errors=True)
    return False


def _may_hold(folder: Path) -> bool:
    """Whether we may write there, and what lies there may be run and loaded."""
    try:
        return os.access(folder, os.W_OK | os.X_OK) and not os.statvfs(folder).f_flag & os.ST_NOEXEC
    except OSError:
        return False


def _kept(place: Path) -> Path:
    """As long as a process holds a lock on it, systemd-tmpfiles leaves it alone; its time says when it was last used."""
    fcntl.flock(os.open(place, os.O_RDONLY), fcntl.LOCK_SH)
    os.utime(place)
    return place


@contextmanager
def _locked(folder: Path, operation: int = fcntl.LOCK_EX) -> Iterator[None]:
    """A lock goes with the process that holds it, in whatever container that runs."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, operation)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def live_folder(parent: Path, identity: Identity, *, writable: bool = True) -> Iterator[Path]:
    """A new folder, removed at the end of the block and locked until then. `writable`: the sandbox's user owns it, and
    nobody else may look."""
    folder = parent / secrets.token_hex(8)
    folder.mkdir(mode=0o700)
    if not writable:
        folder.chmod(0o755)
    with _locked(folder):
        try:
            if writable and identity.dropped:
                os.chown(folder, identity.uid, identity.gid)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(identity: Identity) -> int:
    """Removes what processes that are gone left behind; returns how many folders."""
    os.utime(store_folder(identity))  # it is in use
    removed = 0
    for folder in [each for name in LIVE_FOLDERS for each in (store_folder(identity) / name).iterdir()]:
        with (
            contextlib.suppress(OSError),
            _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB),
        ):  # in use, or gone
            if (
                time.time() - folder.stat().st_mtime >= YOUNG_SECONDS
            ):  # else it may just be about to be locked
                shutil.rmtree(folder, ignore_errors=True)
                removed += 1
    return removed
