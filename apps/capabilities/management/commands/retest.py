"""`manage.py retest`: do the active capabilities still do what their examples say?"""

import asyncio
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.models import User
from apps.capabilities.catalog.selectors import retire_reason
from apps.capabilities.models import Capability, Status
from apps.capabilities.runs.examples import Tested, capability_retest
from apps.core.db.writing import writing_for
from apps.core.errors import Conflict, NotFound, Unavailable


class Command(BaseCommand):
    help = (
        "Runs the stored examples of active capabilities, each in a fresh sandbox, and notes on them which fail. "
        "Names what was not used for long or keeps failing. Ends with 1 where an example failed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", nargs="?", default="", help="only the capability of this name")
        parser.add_argument("--user", default="", help="only those of this user")

    def handle(self, *args: Any, **options: Any) -> None:
        rows = _chosen(options["user"], options["name"])
        if not rows:
            raise CommandError(
                "There is no such active capability." if options["name"] else "There are none."
            )
        failed = untested = busy = 0
        for row in rows:
            try:
                with writing_for(row.user_id):
                    tested = asyncio.run(capability_retest(user_id=row.user_id, name=row.name))
            except Unavailable as error:
                raise CommandError(error.message) from error
            except Conflict as error:
                busy += 1
                self.stdout.write(f"{row.user.username}/{row.name}: {error.message}")
                continue
            except NotFound:
                tested = Tested(0)
            failed += not tested.ok
            untested += tested.ok and not tested.tried
            self._report(row, tested, _reason(row))
        done = len(rows) - failed - untested - busy
        self.stdout.write(f"{done} pass, {failed} fail, {untested} have no examples.")
        if failed:
            raise SystemExit(1)

    def _report(self, row: Capability, tested: Tested, reason: str) -> None:
        word = self.style.ERROR("FAILED")
        if tested.ok:
            word = self.style.SUCCESS("ok") if tested.tried else "no examples"
        self.stdout.write(
            f"{row.user.username}/{row.name} v{tested.version}: {word} ({tested.tried} examples)"
        )
        for failure in tested.failures:
            self.stdout.write(f"    {failure}")
        if reason:
            self.stdout.write(f"    {reason} It may be time to retire it.")


def _reason(row: Capability) -> str:
    """Why it may be let go, as it is after the test; "" where it is gone by now."""
    found = Capability.objects.for_user(row.user_id).filter(pk=row.pk).select_related("current").first()
    return retire_reason(found) if found else ""


def _chosen(username: str, name: str) -> list[Capability]:
    rows = Capability.objects.unscoped().filter(status=Status.ACTIVE).select_related("user", "current")
    if username:
        if not User.objects.filter(username=username).exists():
            raise CommandError(f"There is no user called {username}.")
        rows = rows.filter(user__username=username)
    if name:
        rows = rows.filter(name=name)
    return list(rows.order_by("user__username", "name"))
