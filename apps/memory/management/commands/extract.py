"""`manage.py extract`: reads what waits of the conversations, now, and says what came of it."""

import asyncio
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from rich.console import Console
from rich.table import Table

from apps.accounts.models import User
from apps.agent.model.client import current_endpoint
from apps.memory.capture import leases, windows
from apps.memory.capture.reader import Tally, users_read
from apps.memory.capture.selectors import is_spent, passages
from apps.memory.models import CaptureWindow, WindowState

FIGURES = (
    ("windows", "passages read"),
    ("idle", "nothing to remember"),
    ("repeated", "read before"),
    ("added", "new memories"),
    ("merged", "merged into known ones"),
    ("superseded", "replaced what held before"),
    ("pending", "wait for review"),
    ("skipped", "known already"),
    ("injected_again", "Izzy's own notes heard again"),
    ("failed", "not read"),
    ("tokens", "tokens"),
)


class Command(BaseCommand):
    help = "Reads the passages of conversations that wait for it, and remembers what is worth it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--user", metavar="NAME", help="only this user's conversations")
        parser.add_argument(
            "--now",
            action="store_true",
            help="also what waits for more to be said or for its next try",
        )
        parser.add_argument("--retry", action="store_true", help="also what was given up")

    def handle(self, *args: Any, **options: Any) -> None:
        user = self._user(options["user"])
        if options["retry"]:
            count = windows.windows_retry(user_id=user.pk if user else None)
            self.stdout.write(f"{count} given up before, tried again")
        if current_endpoint().is_offline:
            self.stdout.write(f"{self._waiting(user)}: no model is connected. Set ANTHROPIC_API_KEY or")
            self.stdout.write("ANTHROPIC_BASE_URL; nothing is lost.")
            return
        users = (
            [user.pk]
            if user
            else leases.users_due(timezone.now(), any_time=options["now"], limit=10_000)
        )
        tally = asyncio.run(users_read(users, any_time=options["now"]))
        self._print(tally)
        now, limit = timezone.now(), f"{settings.IZZY_CAPTURE_TOKENS:,}"
        for key, name in User.objects.filter(pk__in=users).values_list("pk", "username"):
            if is_spent(key, now):
                self.stdout.write(
                    f"{name}: today's {limit} tokens are spent; the rest waits for tomorrow."
                )
        self.stdout.write(f"{self._waiting(user)}.")

    def _user(self, name: str | None) -> User | None:
        if name is None:
            return None
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"There is no user {name}.")
        return user

    def _waiting(self, user: User | None) -> str:
        """2 parts of conversations wait"""
        rows = CaptureWindow.objects.for_user(user) if user else CaptureWindow.objects.unscoped()
        count = rows.filter(state=WindowState.WAITING).count()
        return f"{passages(count)} of conversations {'waits' if count == 1 else 'wait'}"

    def _print(self, tally: Tally) -> None:
        table = Table("", "count")
        for name, label in FIGURES:
            table.add_row(label, f"{getattr(tally, name):,}")
        table.add_row("cost", f"${tally.cost_usd:.4f}")
        console = Console(file=self.stdout)  # type: ignore[arg-type]  # writes like a file
        console.print(table)
        for problem in dict.fromkeys(tally.problems):
            self.stdout.write(f"not read: {problem}")
