"""`manage.py backup FOLDER`: a copy of everything, made while Izzy runs."""

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.storage import storages
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.core.db.copying import CopyFailed, database_copied
from apps.core.db.engines import sqlite_settings
from apps.core.db.pool import database_file

KEYS = ("secret_key", "secrets_key")
CACHES = ("sandbox", "metrics")
"""Folders of the data directory that Izzy makes again by itself."""
SHARED = ("capabilities", "imports")
"""Folders that lie elsewhere where IZZY_FILES_URL is set."""


class Command(BaseCommand):
    help = (
        "Copies the data directory to a new folder while Izzy runs: the database as of one moment, the files of "
        "capabilities, the keys. To restore, stop Izzy and put the folder in place of the data directory."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", help="where to; it must not exist yet")
        parser.add_argument(
            "--without-keys",
            action="store_true",
            help=f"leave out {' and '.join(KEYS)}, which open stored secrets",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        data, folder = Path(settings.IZZY_DATA_DIR), Path(options["folder"]).expanduser().absolute()
        database = database_file() or data / "izzy.sqlite3"
        refuse(data, folder, database_file())
        # Under its own name only once it is complete: half a backup must not pass for one.
        part = folder.with_name(f".{folder.name}.part")
        try:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(mode=0o700, parents=True)
            # Before the files: those of a version are there before its row, and never change.
            self._copy_rows(part / database.name)
            copy_files(data, part, database.name, () if not options["without_keys"] else KEYS)
            if settings.IZZY_FILES_URL:
                for name in SHARED:
                    copy_shared(name, part / name)
            part.rename(folder)
        except (OSError, sqlite3.Error, CopyFailed) as error:
            shutil.rmtree(part, ignore_errors=True)
            raise CommandError(f"The backup failed, nothing was kept of it: {error}.") from error
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        self.stdout.write(f"{folder}: {size / 1_000_000:,.1f} MB.")
        if not options["without_keys"]:
            self.stdout.write(
                "It holds the keys that open stored secrets: keep it where only you can read it."
            )

    def _copy_rows(self, target: Path) -> None:
        """A server's rows come into a file as well, so that a backup is one folder whatever the database."""
        if (file := database_file()) is not None:
            copy_database(file, target)
            return
        target.touch(mode=0o600)
        here = settings.DATABASES["default"]
        with database_copied(here, sqlite_settings(target), lambda table: None):
            pass
        with closing(sqlite3.connect(target)) as copy:
            copy.execute("PRAGMA journal_mode=DELETE")  # one file, without a log beside it
        target.with_name(f"{target.name}-turn").unlink(missing_ok=True)


def refuse(data: Path, folder: Path, database: Path | None) -> None:
    """Raise CommandError where there is nothing to copy, or no place for it."""
    if database is not None and not database.is_file():
        raise CommandError(f"There is no database at {database}: nothing to copy. See IZZY_DATA_DIR.")
    if folder.exists():
        raise CommandError(f"{folder} exists already. Name a folder that does not.")
    if folder.resolve().is_relative_to(data):
        raise CommandError("The backup cannot lie in the data directory itself.")


def copy_database(source: Path, target: Path) -> None:
    """The database as of one moment; writers go on meanwhile. Raises sqlite3.Error where the copy is not sound."""
    target.touch(mode=0o600)
    address = f"{source.as_uri()}?mode=ro"
    with (
        closing(sqlite3.connect(address, uri=True, timeout=30)) as original,
        closing(sqlite3.connect(target)) as copy,
    ):
        original.backup(copy)
        if copy.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            raise sqlite3.DatabaseError(
                "the database is empty, Izzy was never started with it; see IZZY_DATA_DIR"
            )
        # One file, without a log beside it.
        copy.execute("PRAGMA journal_mode=DELETE")
        (found,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise sqlite3.DatabaseError(f"the database is damaged ({found})")


def copy_files(data: Path, target: Path, database: str, left_out: tuple[str, ...]) -> None:
    """Everything else of the data directory, but caches and what belongs to the database while it is open."""
    for entry in data.iterdir():
        if entry.name.startswith((database, ".")) or entry.name in (*CACHES, *left_out):
            continue
        if entry.is_dir():
            shutil.copytree(entry, target / entry.name, symlinks=True)
        else:
            shutil.copy2(entry, target / entry.name)


def copy_shared(name: str, target: Path) -> None:
    """A folder of the files that hosts share, with what lies in it. Raises OSError where their store does not answer."""
    store = storages["shared"]
    try:
        folders, files = store.listdir(name)
    except FileNotFoundError:
        return
    target.mkdir(mode=0o700, exist_ok=True)
    for each in filter(None, files):
        with suppress(FileNotFoundError), closing(store.open(f"{name}/{each}", "rb")) as source:
            (target / each).touch(mode=0o600)
            with (target / each).open("wb") as copy:
                shutil.copyfileobj(source, copy)
    for each in folders:
        copy_shared(f"{name}/{each}", target / each)
