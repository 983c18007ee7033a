"""`manage.py doctor`: what is configured, what works, what to do."""

import http.client
import json
import platform
import sqlite3
import sys
from contextlib import closing
from typing import Any

import django
from django.conf import settings
from django.core.checks import ERROR, run_checks
from django.core.management.base import BaseCommand, CommandParser
from django.db import connection
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from apps.core.health import Check, CheckResult, State, checks, run_check
from apps.core.registries import connection_tests
from izzysite.management.commands.serve import shown_host

ANSWER_SECONDS = 3.0
STYLES = {State.WORKS: "green", State.NOT_SET_UP: "dim", State.BROKEN: "yellow"}


class Command(BaseCommand):
    help = "Looks at everything Izzy needs and says what to do. Ends with 1 where something essential is missing."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--connect",
            action="store_true",
            help="also ask the model (for one token), the embedder and the search engine; up to a minute",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        console = Console()
        here = f" {sqlite3.sqlite_version}" if connection.vendor == "sqlite" else ""
        console.print(
            f"Python {platform.python_version()}, Django {django.__version__}, {connection.display_name}{here},"
            f" data in {settings.IZZY_DATA_DIR}"
        )
        said = [Column(title, overflow="fold") for title in ("What is", "What to do")]
        table = Table("State", "Part", *said)
        broken = False
        wanted = [*checks(), Check("address", check_address, essential=False)]
        if options["connect"]:
            wanted += [
                Check(f"asking: {name}", ask, essential=False) for name, ask in connection_tests.items()
            ]
        for check in wanted:
            result = run_check(check)
            lacks_essential = check.essential and result.state == State.BROKEN
            broken = broken or lacks_essential
            style = "red" if lacks_essential else STYLES[result.state]
            table.add_row(
                f"[{style}]{result.state}[/]", check.name, escape(result.message), escape(result.hint)
            )
        for finding in run_checks(include_deployment_checks=False):
            wrong = finding.level >= ERROR
            broken = broken or wrong
            mark = "[red]error[/]" if wrong else "[yellow]warning[/]"
            table.add_row(mark, "settings", escape(finding.msg), escape(finding.hint or ""))
        console.print(table)
        if broken:
            sys.exit(1)


def check_address() -> CheckResult:
    """Checks if Izzy's address is free, in use by it, or taken."""
    host, port = settings.IZZY_HOST, settings.IZZY_PORT
    connection = http.client.HTTPConnection(shown_host(host).strip("[]"), port, timeout=ANSWER_SECONDS)
    try:
        with closing(connection):
            connection.request("GET", "/healthz", headers={"Host": "localhost"})
            answer = connection.getresponse().read(1000)
        if json.loads(answer) == {"status": "ok"}:
            return CheckResult(True, f"Izzy answers at {host}:{port}.")
    except ConnectionRefusedError:
        return CheckResult(
            False, f"Nothing answers at {host}:{port}.", "Start it: make run, or manage.py serve."
        )
    except TimeoutError:
        message = f"What listens at {host}:{port} does not answer within {ANSWER_SECONDS:.0f} seconds."
        hint = "A frozen Izzy is ended and started again by `serve` after one or two minutes; look at its log."
        return CheckResult(False, message, hint)
    except (OSError, ValueError, http.client.HTTPException):
        pass
    hint = "Set IZZY_PORT to another port, or IZZY_HOST to an address of this machine."
    return CheckResult(False, f"Izzy does not answer at {host}:{port}, something else may.", hint)
