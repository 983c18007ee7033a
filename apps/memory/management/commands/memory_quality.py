"""How good the memories are, in numbers."""

import json
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.table import Table

from apps.core.registries import stats_providers


class Command(BaseCommand):
    """`manage.py memory_quality [--user NAME] [--json]`: a column per user."""

    help = "Duplicates, contradictions, unused notes and what extraction costs, by user."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", help="Only this user.")
        parser.add_argument("--json", action="store_true", help="JSON by user instead of a table.")

    def handle(self, *args: Any, **options: Any) -> None:
        users: dict[str, UUID] = dict(
            get_user_model().objects.order_by("username").values_list("username", "pk")
        )
        if options["user"] is not None:
            if options["user"] not in users:
                raise CommandError(f"There is no user called {options['user']}.")
            users = {options["user"]: users[options["user"]]}
        quality = stats_providers["memory_quality"]
        figures = {name: quality(user_id) for name, user_id in users.items()}
        if options["json"]:
            self.stdout.write(json.dumps(figures, indent=2))
            return
        if not figures:
            self.stdout.write("There are no users yet.")
            return
        table = Table("", *figures)
        for line in next(iter(figures.values())):
            table.add_row(line.replace("_", " "), *(_shown(values[line]) for values in figures.values()))
        console = Console()
        with console.capture() as drawn:
            console.print(table)
        self.stdout.write(drawn.get())


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:,}"
