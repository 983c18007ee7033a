"""`manage.py createtoken USER`: an API token from the command line."""

from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from apps.accounts.models import DAILY_TOKENS, MAX_DAILY_TOKENS, ProxyMemory, Scope, User
from apps.accounts.services import token_create
from apps.core.db.writing import writing_for
from apps.core.errors import IzzyError

MAX_DAYS = 36_500


class Command(BaseCommand):
    help = "Makes an API token for a user and prints it. It is not stored and cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", help="user name")
        parser.add_argument("--name", default="command line", help="what the token is for (%(default)s)")
        parser.add_argument(
            "--scope",
            action="append",
            choices=[str(scope) for scope in Scope],
            help="may be repeated; without it: write, which includes read",
        )
        parser.add_argument(
            "--reaches-out",
            action="store_true",
            help="over MCP, capabilities that reach hosts or use secrets run unasked",
        )
        parser.add_argument(
            "--person-answers",
            action="store_true",
            help="a yes to what the program asks in its own dialogue counts as the user's",
        )
        parser.add_argument(
            "--proxy-memory",
            choices=ProxyMemory.values,
            default=str(ProxyMemory.BOTH),
            help="what the Messages proxy does with memory (%(default)s)",
        )
        parser.add_argument(
            "--proxy-daily-tokens",
            type=int,
            metavar="N",
            default=DAILY_TOKENS,
            help="with the scope proxy: tokens of the instance's key in a day (%(default)s)",
        )
        parser.add_argument(
            "--days", type=int, metavar="N", help="days until it expires, at least 1; without it: never"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")
        days = options["days"]
        if days is not None and not 1 <= days <= MAX_DAYS:
            raise CommandError(
                f"--days must be from 1 to {MAX_DAYS:,}; leave it out for a token that stays valid."
            )
        expires_at = timezone.now() + timedelta(days=days) if days is not None else None
        if not 1 <= options["proxy_daily_tokens"] <= MAX_DAILY_TOKENS:
            raise CommandError(f"--proxy-daily-tokens must be from 1 to {MAX_DAILY_TOKENS:,}.")
        scopes = options["scope"] or [str(Scope.WRITE)]
        try:
            with writing_for(user.pk):
                _, secret = token_create(
                    user=user,
                    name=options["name"],
                    scopes=scopes,
                    expires_at=expires_at,
                    reaches_out=options["reaches_out"],
                    person_answers=options["person_answers"],
                    proxy_memory=options["proxy_memory"],
                    proxy_daily_tokens=options["proxy_daily_tokens"],
                )
        except IzzyError as error:
            raise CommandError(error.message) from error
        self.stdout.write(secret)
