"""`manage.py check_integrity`: whether rows, files and the search index still fit each other; with --fix they do again."""

import json
import sys
import time
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError
from rich.console import Console

from apps.core.db.troubles import DAMAGED, explain
from apps.core.health import check_database
from apps.core.integrity import checks
from apps.core.integrity.running import CheckOutcome, examine

CLEAN, FINDINGS, BLIND = 0, 1, 2
SHOWN = 200
"""Findings that are printed for people; JSON has all of them."""


class Command(BaseCommand):
    help = (
        "Looks whether rows, files and the search index fit each other, also while Izzy runs. Ends with 0 where they do, 1 "
        "where something is wrong (with --fix: where something is left), 2 where it could not look."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--fix",
            action="store_true",
            help="repair what can be made anew from the rows; what a user wrote is never removed",
        )
        parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
        parser.add_argument("--user", metavar="NAME", help="look at what this user has alone")

    def handle(self, *args: Any, **options: Any) -> None:
        began = time.monotonic()
        console = Console(stderr=True)
        names = dict(checks())
        try:
            state = check_database()
            if not state.ok and state.message != DAMAGED.message:
                _blind(f"{state.message} {state.hint}", options)
            user_id = _user(options["user"]) if options["user"] else None
            with console.status("") as status:
                outcomes = list(
                    examine(
                        user_id=user_id,
                        fix=options["fix"],
                        progress=lambda name: status.update(f"{names[name].title} …"),
                    )
                )
            people = _people(outcomes)
        except DatabaseError as error:
            trouble = explain(error)
            _blind(f"{trouble.message} {trouble.hint}" if trouble else str(error), options)
        left = sum(not outcome.fixed for outcome in outcomes)
        if options["json"]:
            result = {
                "clean": not left,
                "checks": len(names),
                "findings": [
                    outcome.to_json() | {"username": people.get(outcome.finding.user_id)}
                    for outcome in outcomes
                ],
                "fixed": len(outcomes) - left,
                "left": left,
                "took_ms": round((time.monotonic() - began) * 1000),
            }
            self.stdout.write(json.dumps(result, indent=2, ensure_ascii=False))
        else:
            for line in _lines(outcomes, people, left=left, fix=options["fix"]):
                self.stdout.write(line)
        if left:
            sys.exit(FINDINGS)


def _user(name: str) -> UUID:
    found = get_user_model()._base_manager.filter(username=name).values_list("pk", flat=True).first()
    if found is None:
        raise CommandError(f"There is no user called {name}.", returncode=BLIND)
    key: UUID = found
    return key


def _people(outcomes: list[CheckOutcome]) -> dict[UUID | None, str]:
    ids = {outcome.finding.user_id for outcome in outcomes} - {None}
    users = get_user_model()._base_manager.in_bulk([key for key in ids if key])
    return {key: user.get_username() for key, user in users.items()}


def _blind(why: str, options: dict[str, Any]) -> None:
    """Ends the command: nothing was looked at."""
    if options["json"]:
        sys.stdout.write(json.dumps({"clean": None, "error": why}) + "\n")
    raise CommandError(f"Could not look: {why}", returncode=BLIND)


def _lines(
    outcomes: list[CheckOutcome], people: dict[UUID | None, str], *, left: int, fix: bool
) -> Iterator[str]:
    """For people: each finding in three lines."""
    if not outcomes:
        yield f"Everything fits: {len(checks())} checks found nothing."
        return
    for outcome in outcomes[:SHOWN]:
        finding = outcome.finding
        whose = f" ({people[finding.user_id]})" if finding.user_id in people else ""
        yield f"{outcome.check}: {finding.about}{whose}"
        yield f"  {finding.message}"
        if outcome.fixed:
            yield f"  Repaired: {finding.repair}"
        elif finding.repair:
            yield f"  {'Not repaired, see the log' if fix else 'With --fix'}: {finding.repair}"
        else:
            yield f"  Left to you: {finding.advice}"
        yield ""
    if len(outcomes) > SHOWN:
        yield f"… and {len(outcomes) - SHOWN:,} more; --json has all of them."
    repaired = f"{len(outcomes) - left:,} repaired, " if fix else ""
    yield f"{len(outcomes):,} found, {repaired}{left:,} left."
