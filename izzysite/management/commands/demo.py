"""`manage.py demo USER`: a year of an invented person's notes, conversations, files and capabilities, to look at Izzy with."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.models import User
from apps.core.db.writing import writing_for
from apps.core.errors import IzzyError
from izzysite.demo.placing import WORDS, demo_add, demo_remove


class Command(BaseCommand):
    help = (
        "Puts a year of an invented person into an account: memories, conversations, files, capabilities with their runs. "
        "--remove takes it out again."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER")
        parser.add_argument("--remove", action="store_true", help="take out what the demo made")
        parser.add_argument(
            "--changed", action="store_true", help="with --remove: also what was changed since"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")
        if options["changed"] and not options["remove"]:
            raise CommandError("--changed goes with --remove.")
        try:
            with writing_for(user.pk):
                if options["remove"]:
                    self._remove(user, changed=options["changed"])
                else:
                    made = demo_add(user.pk)
                    self.stdout.write(f"Made {_listed(made)}. --remove takes them out again.")
        except IzzyError as error:
            raise CommandError(error.message) from error

    def _remove(self, user: User, *, changed: bool) -> None:
        removed = demo_remove(user.pk, changed=changed)
        self.stdout.write(f"Removed {_listed(removed.counts)}.")
        kept = {kind: names for kind, names in removed.kept.items() if names}
        if kept:
            self.stdout.write("Kept, since you changed or used them; they are yours now:")
        for kind, names in kept.items():
            self.stdout.write(f"  {WORDS[kind]}:")
            for name in names:
                self.stdout.write(f"    {name}")


def _listed(counts: dict[str, int]) -> str:
    """82 memories, 4 files, 2 capabilities and 15 conversations"""
    *parts, last = [f"{count} {WORDS[kind]}" for kind, count in counts.items()]
    return f"{', '.join(parts)} and {last}"
