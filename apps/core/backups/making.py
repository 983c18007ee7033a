"""Makes a backup while Izzy runs: its rows are those of one moment, and each file that one of them names is there."""

import hashlib
import json
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from django.conf import settings
from django.core.files.storage import storages
from django.db import connection
from django.utils import timezone

from apps.core.db.copying import database_copied
from apps.core.db.engines import sqlite_settings
from apps.core.db.pool import database_file
from apps.core.db.writing import one_view
from apps.core.keys import keys_differ
from apps.core.private import private

from . import CACHES, DATABASE, KEYS, MANIFEST, OF_THE_DISK, BackupFailed, checksum, named_files

OTHER_KEYS = (
    "The keys here open none of its stored secrets: set IZZY_DATA_DIR to the data directory that Izzy runs with, or the keys in "
    "the environment to its own; --without-keys leaves them out"
)
TRIES = 20
PIECE = 1 << 20


def backup_make(data: Path, folder: Path, *, keys: bool) -> list[str]:
    """Copies all to `folder`, an empty one; returns the files that rows name and that are lost or were changed where they lie.

    Raises BackupFailed, OSError, and the errors of the database and of copying.
    """
    if keys and (trouble := keys_differ()):
        raise BackupFailed(f"{trouble} {OTHER_KEYS}")
    _rest_copy(data, folder, left_out=() if keys else KEYS)
    lost = rows_and_files_copy(folder)
    written = sorted(path for path in folder.rglob("*") if path.is_file())
    sums = {str(path.relative_to(folder)): checksum(path) for path in written}
    about = {"made_at": timezone.now().isoformat(), "keys": keys, "lost": lost, "files": sums}
    with open(folder / MANIFEST, "w", opener=private) as manifest:
        manifest.write(json.dumps(about, indent=1, sort_keys=True) + "\n")
    for path in [*folder.rglob("*"), folder]:
        _synced(path)
    return lost


def _rest_copy(data: Path, target: Path, *, left_out: tuple[str, ...]) -> None:
    """The keys, and whatever else lies there; without rows, named files, caches, links, and what goes meanwhile."""
    ours = {*left_out, *CACHES, *named_files, MANIFEST, OF_THE_DISK}
    database = (database_file() or data / DATABASE).name
    for entry in data.iterdir() if data.is_dir() else ():
        if entry.name in ours or entry.name.startswith((".", database)):
            continue
        if entry.is_file():  # a key may be a link
            _copied(entry, target / entry.name)
        for folder, _, names in os.walk(entry) if not entry.is_symlink() else ():
            for path in (Path(folder, name) for name in names):
                if path.is_file() and not path.is_symlink():
                    _copied(path, target / path.relative_to(data))


def _copied(source: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        shutil.copy2(source, target)


def rows_and_files_copy(folder: Path) -> list[str]:
    """Copies files until a view of the database names none that is missing, and then the database as that view shows it.

    A file goes only after its row: one that was missing in an earlier view already, although a later view still has its row,
    is lost where it lies.
    """
    files = _Files(folder)
    missing = files.fetch()  # most of them come before the view, which a database keeps at some cost
    for _ in range(TRIES):
        with one_view():
            before, missing = missing, files.fetch()
            if missing <= before:
                _database_copy(folder / DATABASE)
                files.prune()
                return sorted(path for path, _ in missing)
    raise BackupFailed(
        "files went again and again while they were copied; try again when less is going on"
    )


class _Files:
    """The files that rows name and `folder` has by now."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.have: dict[str, str] = {}  # path -> SHA-256
        self.named: set[str] = set()

    def fetch(self) -> set[tuple[str, str]]:
        """Copies the files that are named now and not there yet; returns (path, SHA-256) of what could not be had so."""
        missing = set()
        self.named = set()
        for named in named_files.values():
            for path, digest in named():
                self.named.add(path)
                if not self._has(path, digest):
                    self._copy(path)
                    if not self._has(path, digest):
                        missing.add((path, digest))
        return missing

    def _has(self, path: str, digest: str) -> bool:
        return path in self.have and digest in {"", self.have[path]}

    def _copy(self, path: str) -> None:
        target, summed = self.folder / path, hashlib.sha256()
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.have.pop(path, None)
        try:
            with (
                storages["shared"].open(path, "rb") as source,
                open(target, "wb", opener=private) as copy,
            ):
                while piece := source.read(PIECE):
                    summed.update(piece)
                    copy.write(piece)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            target.unlink(missing_ok=True)
        else:
            self.have[path] = summed.hexdigest()

    def prune(self) -> None:
        """Removes what is no longer named, and folders without a file."""
        for path in self.have.keys() - self.named:
            (self.folder / path).unlink()
        for place in named_files:
            for folder in sorted((self.folder / place).rglob("*/"), reverse=True):
                if not any(folder.iterdir()):
                    folder.rmdir()


def _database_copy(target: Path) -> None:
    """The rows that the view at hand shows; writers go on meanwhile."""
    open(target, "wb", opener=private).close()
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_export_snapshot()")
            (view,) = cursor.fetchone()
        here = settings.DATABASES["default"]
        with database_copied(here, sqlite_settings(target), lambda table: None, view=view):
            pass
    with closing(sqlite3.connect(target)) as copy:
        if connection.vendor == "sqlite":
            connection.connection.backup(copy)
        copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
        (found,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    target.with_name(f"{target.name}-turn").unlink(missing_ok=True)
    if found != "ok":
        raise BackupFailed(f"the database is damaged ({found})")


def _synced(path: Path) -> None:
    """Its bytes are on the disk when this returns."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
