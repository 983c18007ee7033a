"""`manage.py move_database URL`: everything in the database goes to a PostgreSQL."""

from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from apps.core.db.copying import CopyFailed, database_copied
from apps.core.db.pool import database_file
from apps.core.jobs.running import Running, data_directory_alone
from apps.core.jobs.worker import HEARTBEAT_MISSED, last_beat
from izzysite.env import database_settings


class Command(BaseCommand):
    help = (
        "Copies everything in the database into an empty PostgreSQL and compares both. Izzy must not run. Interrupted, "
        "it goes on when it is started again. The files of the data directory stay where they are."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", help="postgresql://user:password@host:5432/name")

    def handle(self, *args: Any, **options: Any) -> None:
        target = database_settings(options["url"], settings.IZZY_DB_CONNECTIONS, "The address")
        source = settings.DATABASES["default"]
        if all(target.get(part) == source.get(part) for part in ("NAME", "HOST", "PORT")):
            raise CommandError("That is the database which Izzy uses already.")
        self._refuse_while_running()
        try:
            # Whoever goes on with the file would write what nobody finds any more.
            with (
                data_directory_alone(Path(settings.IZZY_DATA_DIR)) if database_file() else nullcontext(),
                database_copied(source, target, self.stdout.write) as rows,
            ):
                self.stdout.write(f"Copied and compared: {rows:,} rows.")
        except (CopyFailed, Running) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            "Now set DATABASE_URL to that address, for all processes, and start Izzy. The old database is as it was: "
            "put it away once all is well."
        )

    def _refuse_while_running(self) -> None:
        beat = last_beat()
        if beat and timezone.now() - beat < min(HEARTBEAT_MISSED, timedelta(seconds=30)):
            raise CommandError(
                "Izzy's worker ran half a minute ago. Stop Izzy, wait for a moment, and try again."
            )
