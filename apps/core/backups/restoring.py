"""Puts a backup back: looked at first, made ready beside the data directory's files, and only then put in their place."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.files import File
from django.core.files.storage import Storage, storages
from django.core.management import call_command
from django.utils import timezone

from apps.core.db.copying import database_copied, databases_named
from apps.core.db.engines import SQLITE, sqlite_settings
from apps.core.db.troubles import stale_message
from apps.core.integrity.machine import leased_models
from apps.core.jobs.leases import RELEASED
from apps.core.jobs.running import RUNNING, data_directory_alone

from . import CACHES, DATABASE, KEYS, MANIFEST, OF_THE_DISK, BackupFailed, checksum, named_files

PART = ".restore.part"
READY = "restored"
"""The alias of the database that is being made ready."""


@dataclass(frozen=True, slots=True)
class Restored:
    """`kept` is where what was there before lies now, None where there was nothing worth keeping; `keys` whether the backup
    had keys."""

    kept: Path | None
    keys: bool


def backup_judge(folder: Path) -> None:
    """Raises BackupFailed where the folder is no whole backup."""
    if not folder.is_dir():
        raise BackupFailed(f"There is no folder {folder}.")
    if (manifest := folder / MANIFEST).is_file():
        try:
            sums = json.loads(manifest.read_text())["files"]
        except (ValueError, KeyError, TypeError) as error:
            raise BackupFailed(f"The backup is damaged: {MANIFEST} cannot be read.") from error
        for name, digest in sums.items():
            if (found := checksum(folder / name)) != digest:
                what = "was changed after it was made" if found else "is missing"
                raise BackupFailed(f"The backup is damaged: {name} {what}.")
    _database_judge(folder / DATABASE)


def _database_judge(file: Path) -> None:
    if not file.is_file():
        raise BackupFailed(f"There is no {file.name} in {file.parent}: this is no backup of Izzy's.")
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            (found,) = database.execute("PRAGMA integrity_check(1)").fetchone()
            tables = (
                "SELECT count(*) FROM sqlite_master WHERE name IN ('django_migrations', 'accounts_user')"
            )
            (ours,) = database.execute(tables).fetchone()
    except sqlite3.DatabaseError as error:
        raise BackupFailed(f"The backup's database is damaged: {error}.") from error
    if found != "ok":
        raise BackupFailed(f"The backup's database is damaged: {found}.")
    if ours != 2:
        raise BackupFailed(f"{file} is no database of Izzy's.")


def backup_restore(
    folder: Path, data: Path, database: dict[str, Any], say: Callable[[str], None], *, force: bool
) -> Restored:
    """Puts the backup in place of what is in the data directory, which is kept with `force` and must be empty without; where
    `database` (as in DATABASES) is a server's, the rows go there, and it must be empty in any case.

    Raises BackupFailed, Running, OSError where something cannot be written, CopyFailed and the database's errors. Then the data
    directory is as it was; what a server has got by then is gone on with when the same backup is restored again.
    """
    backup_judge(folder)
    if folder.resolve().is_relative_to(data.resolve()):
        raise BackupFailed("The backup lies in the data directory. Move it elsewhere first.")
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with data_directory_alone(data):
        used = is_used(data)
        if used and not force:
            raise BackupFailed(
                f"{data} or the store of files holds an Izzy already. With --force it is kept beside, and the backup takes "
                "its place."
            )
        part = data / PART
        shutil.rmtree(part, ignore_errors=True)
        try:
            _copied(folder, part)
            keys = _keys_kept(data, part)
            _closed(part)
            _made_ready(part)
            _elsewhere_put(part, data)
            if database["ENGINE"] == SQLITE:
                kept = _put_in_place(part, data)
            else:
                with database_copied(sqlite_settings(part / DATABASE), database, say):
                    kept = _put_in_place(part, data, without=DATABASE)
        finally:
            shutil.rmtree(part, ignore_errors=True)
        if not used:
            _cleared(kept)
        return Restored(kept if kept.exists() else None, keys)


def is_used(data: Path) -> bool:
    """Whether there is anything in the data directory, or in the store of files, that somebody would miss."""
    if any(entry.name.startswith(_aside(data)) for entry in data.iterdir()):
        return True  # a restore may have ended half way
    folders = (entry for entry in data.iterdir() if entry.is_dir() and not entry.is_symlink())
    left_out = {*CACHES, OF_THE_DISK}
    others = [
        entry for entry in folders if entry.name not in left_out and not entry.name.startswith(".")
    ]
    if _has_user(data / DATABASE) or any(any(folder.iterdir()) for folder in others):
        return True
    return any(map(_is_stored, named_files))


def _is_stored(place: str) -> bool:
    try:
        return any(storages["shared"].listdir(place))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _has_user(file: Path) -> bool:
    """Whether the database has a user in it, or cannot be looked at."""
    if not file.exists():
        return False
    try:
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as database:
            return bool(database.execute("SELECT count(*) FROM accounts_user").fetchone()[0])
    except sqlite3.DatabaseError as error:
        return "no such table" not in str(error)


def _copied(folder: Path, part: Path) -> None:
    """All of the backup but its list and, where it is a plain copy of a data directory, what belongs to that one alone."""

    def left_out(place: str, names: list[str]) -> set[str]:
        if Path(place) != folder:
            return set()
        others = {MANIFEST, *CACHES, OF_THE_DISK}
        return {name for name in names if name in others or name.startswith(".")}

    shutil.copytree(folder, part, symlinks=True, ignore=left_out)


def _keys_kept(data: Path, part: Path) -> bool:
    """Whether the backup has its keys; else those that are there stay."""
    if all((part / name).is_file() for name in KEYS):
        return True
    for name in KEYS:
        if (data / name).is_file() and not (part / name).exists():
            shutil.copy2(data / name, part / name)
    return False


def _closed(part: Path) -> None:
    """For the eyes of the server's own user, whoever could read the backup."""
    for path in [part, *part.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o700 if path.is_dir() else 0o600)


def _made_ready(part: Path) -> None:
    """Brings the database up to date, and gives back the leases of processes that ran when it was copied."""
    with databases_named(**{READY: sqlite_settings(part / DATABASE)}):
        if stale := stale_message(READY):
            call_command("migrate", database=READY, interactive=False, verbosity=0)
            stale = stale_message(READY)
        if stale:
            raise BackupFailed(f"{stale} See *Updates* in docs/operations.md.")
        for model in leased_models():
            model._base_manager.using(READY).exclude(runner="").update(**RELEASED)
    (part / f"{DATABASE}-turn").unlink(missing_ok=True)


def _elsewhere_put(part: Path, data: Path) -> None:
    """Files whose storage is not in the data directory go there."""
    storage = storages["shared"]
    for place in named_files if _lies_elsewhere(storage, data) else ():
        for path in sorted((part / place).rglob("*")):
            if path.is_file():
                name = str(path.relative_to(part))
                storage.delete(name)
                with path.open("rb") as file:
                    if storage.save(name, File(file)) != name:
                        raise BackupFailed(f"{name} is in the way where the files of {place} lie.")
        shutil.rmtree(part / place, ignore_errors=True)


def _lies_elsewhere(storage: Storage, data: Path) -> bool:
    try:
        return Path(storage.path("")).resolve() != data.resolve()
    except NotImplementedError:
        return True


def _aside(data: Path) -> str:
    """The beginning of the names of folders within the data directory that hold what was there before."""
    return f".{data.name}.before-restore-"


def _put_in_place(part: Path, data: Path, *, without: str | None = None) -> Path:
    """Puts aside what is in the data directory, and what was made ready in its place, but for a database `without` and what lies
    beside it; returns the folder of what was there before. Whatever goes wrong, all is moved back before it is raised."""
    kept = _kept_made(data)
    stays = {PART, RUNNING, *CACHES, OF_THE_DISK}
    before = [
        entry
        for entry in data.iterdir()
        if entry.name not in stays and not entry.name.startswith(_aside(data))
    ]
    # The database goes last: while it is there, nobody takes the directory for an unused one.
    before.sort(key=lambda entry: entry.name == DATABASE)
    moves = [(entry, kept / entry.name) for entry in before]
    ready = [entry for entry in part.iterdir() if without is None or not entry.name.startswith(without)]
    moves += [(entry, data / entry.name) for entry in ready]
    try:
        for source, target in moves:
            source.rename(target)
    except BaseException:
        for source, target in reversed(moves):
            if not os.path.lexists(source):
                target.rename(source)
        kept.rmdir()
        raise
    return kept


def _kept_made(data: Path) -> Path:
    """An empty folder on the disk of the data directory: beside it, or within it where it is a disk or a mount of its own."""
    name = f"{data.name}.before-restore-{timezone.now():%Y%m%dT%H%M%S}"
    kept = data / f".{name}"
    kept.mkdir(mode=0o700)
    try:
        return kept.rename(data.with_name(name))  # as everything that is moved into it
    except OSError:
        return kept


def _cleared(kept: Path) -> None:
    """Of a data directory that was not used goes what Izzy makes by itself; the folder stays where more is in it."""
    for entry in list(kept.iterdir()):
        if entry.is_dir() and not entry.is_symlink():
            with suppress(OSError):  # not empty
                entry.rmdir()
        elif entry.name in KEYS or entry.name.startswith(DATABASE):
            entry.unlink()
    with suppress(OSError):
        kept.rmdir()
