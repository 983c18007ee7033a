"""`manage.py backup FOLDER`: a copy of everything, made while Izzy runs."""

import shutil
import sqlite3
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from apps.core.backups import KEYS, BackupFailed, backup_made
from apps.core.backups.making import backup_make
from apps.core.db.copying import CopyFailed
from apps.core.db.pool import database_file
from apps.core.db.troubles import FULL, explain


class Command(BaseCommand):
    help = (
        "Copies everything to a new folder while Izzy runs: the rows of one moment, the files that they name, the keys. "
        "`restore` puts it back."
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
        keys = not options["without_keys"]
        try:
            refuse(data, folder)
        except OSError as error:
            raise CommandError(f"{folder} cannot be looked at: {error.strerror}.") from error
        # Under its own name only once it is complete: half a backup must not pass for one.
        part = folder.with_name(f".{folder.name}.part")
        try:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(mode=0o700, parents=True)
            lost = backup_make(data, part, keys=keys)
            part.rename(folder)
        except (OSError, sqlite3.Error, DatabaseError, CopyFailed, BackupFailed) as error:
            raise CommandError(
                f"The backup failed, nothing was kept of it: {_why(error, folder)}."
            ) from error
        finally:
            shutil.rmtree(part, ignore_errors=True)
        backup_made()
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        self.stdout.write(f"{folder}: {size / 1_000_000:,.1f} MB.")
        if lost:
            self.stderr.write(
                f"Warning: {len(lost):,} files that rows name are gone or were changed where they lie, the first is {lost[0]}. "
                "`manage.py check_integrity` names all of them."
            )
        if keys:
            self._tell_of_keys(folder)

    def _tell_of_keys(self, folder: Path) -> None:
        if (folder / KEYS[1]).is_file():
            self.stdout.write(
                "It holds the keys that open stored secrets: keep it where only you can read it."
            )
        else:
            self.stdout.write(
                "The key of stored secrets is in no file here: keep IZZY_SECRETS_KEY yourself."
            )


def refuse(data: Path, folder: Path) -> None:
    """Raise CommandError where there is nothing to copy, or no place for it."""
    database = database_file()
    if database is not None and not (database.is_file() and database.stat().st_size):
        raise CommandError(f"There is no database at {database}: nothing to copy. See IZZY_DATA_DIR.")
    if folder.exists():
        raise CommandError(f"{folder} exists already. Name a folder that does not.")
    if folder.resolve().is_relative_to(data.resolve()):
        raise CommandError("The backup cannot lie in the data directory itself.")


def _why(error: Exception, folder: Path) -> str:
    """A sentence without its full stop."""
    trouble = explain(error)
    if trouble is FULL:  # all that a backup writes lies there
        return f"the disk is full. Make room where {folder} is to lie"
    return (f"{trouble.message} {trouble.hint}" if trouble else str(error).strip()).rstrip(".")
