"""`manage.py prepare`: what happens once before web processes and workers start."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from apps.accounts.services import setup_note
from apps.core.keys import refuse_other_keys
from izzysite.management.commands.serve import close_database_file, update_database


class Command(BaseCommand):
    help = (
        "Brings the database up to date, checks that the keys are those it was made with, and says how to set the "
        "instance up. Several at once wait for each other. `serve` does the same by itself."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--accept-keys",
            action="store_true",
            help="this process' keys are the right ones from now on, though the database was prepared with others",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        close_database_file()
        update_database()
        refuse_other_keys(accept=bool(options["accept_keys"]))
        self.stdout.write("The database is up to date.")
        address = settings.IZZY_PUBLIC_URL or f"http://{settings.IZZY_HOST}:{settings.IZZY_PORT}"
        if text := setup_note(address):
            self.stdout.write(text)
