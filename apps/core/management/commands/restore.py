"""`manage.py restore FOLDER`: puts back what `backup` has copied."""

import sqlite3
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from apps.core.backups import BackupFailed
from apps.core.backups.restoring import backup_restore
from apps.core.db.copying import CopyFailed
from apps.core.db.engines import SQLITE
from apps.core.db.troubles import explain
from apps.core.jobs.running import Running

HALF = "The data directory is as it was; rows that are in the database by now are gone on with when the same backup is restored again"


class Command(BaseCommand):
    help = (
        "Puts a backup into the data directory, and with DATABASE_URL its rows into that database, which must be empty. "
        "Izzy must not run. The backup stays as it is."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", help="what `backup` has made")
        parser.add_argument(
            "--force",
            action="store_true",
            help="also where the data directory holds an Izzy: that is kept beside it",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        data, folder = Path(settings.IZZY_DATA_DIR), Path(options["folder"]).expanduser().absolute()
        database = settings.DATABASES["default"]
        try:
            done = backup_restore(folder, data, database, self.stdout.write, force=options["force"])
        except (BackupFailed, CopyFailed, Running) as error:
            raise CommandError(str(error)) from error
        except (OSError, sqlite3.Error, DatabaseError) as error:
            trouble = explain(error)
            why = f"{trouble.message} {trouble.hint}" if trouble else f"{str(error).strip()}."
            left = "Nothing was restored" if database["ENGINE"] == SQLITE else HALF
            raise CommandError(f"{left}: {why}") from error
        self.stdout.write(f"Restored to {data}.")
        if done.kept:
            self.stdout.write(f"What was there before lies in {done.kept}.")
        if not done.keys:
            self.stdout.write(
                "The backup holds no keys: stored secrets open only with the secrets_key (or IZZY_SECRETS_KEY) of before."
            )
        self.stdout.write("Look with `manage.py check_integrity`, then start Izzy.")
