"""`manage.py import_memories --user NAME FILE`: brings a file in, here and now, and says what became of its records."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from apps.accounts.models import User
from apps.core.db.writing import writing_for
from apps.core.errors import IzzyError
from apps.core.jobs.leases import LeaseLost
from apps.memory.models import Import, ImportState
from apps.memory.transfer.jobs import AUTO, import_create, import_formats, import_get
from apps.memory.transfer.running import CUT_OFF, Run, import_taken

CHUNK = 1_000_000
WRONG_SHOWN = 20


class Command(BaseCommand):
    help = (
        "Brings in a file of Izzy's or another program's for a user. Ends with 0 where all of it was taken, known already or "
        "skipped, 1 where something in it was wrong or its end is missing (the rest is taken all the same) or the import failed."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="the file; - reads the input")
        parser.add_argument("--user", required=True, metavar="NAME")
        formats = [name for name, _, _ in import_formats()]
        parser.add_argument("--format", choices=[AUTO, *formats], default=AUTO)
        parser.add_argument("--dry-run", action="store_true", help="only say what would become of it")
        parser.add_argument(
            "--own", action="store_true", help="it is the user's own export: keep origin and trust"
        )
        parser.add_argument(
            "--accept", action="store_true", help="the user vouches for it: nothing waits for review"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")
        try:
            with writing_for(user.pk):
                job = import_create(
                    user_id=user.pk,
                    chunks=_chunks(options["file"]),
                    name="" if options["file"] == "-" else Path(options["file"]).name,
                    format=options["format"],
                    dry_run=options["dry_run"],
                    own=options["own"],
                    accept=options["accept"],
                    limited=False,
                    here=True,
                )
        except IzzyError as error:
            raise CommandError(error.message) from error
        except OSError as error:
            if Path(error.filename or "") != Path(options["file"]):  # of the copy that is taken
                raise
            raise CommandError(f"{options['file']} cannot be read: {error.strerror}") from error
        self._run(job)
        job = import_get(user.pk, job.pk)
        self._print(job)
        if job.state != ImportState.DONE:
            raise CommandError(job.error or f"The import is {job.get_state_display().lower()}.")
        if wrong := sum(row["wrong"] for row in job.report.get("kinds", [])):
            raise CommandError(
                f"{wrong:,} of its records {'was' if wrong == 1 else 'were'} wrong; see above."
            )
        if CUT_OFF in job.report.get("notes", []):
            raise CommandError("Its end is missing; see above.")

    def _run(self, job: Import) -> None:
        taken = import_taken(job.pk)
        if taken is None:
            raise CommandError("Another process has begun with this import.")
        run = Run(taken)
        console = Console(file=sys.stderr)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task(f"Importing {job.name or 'text'}", total=None)
            try:
                with Import.leases_kept([taken.pk]):
                    while run.step():
                        progress.update(task, completed=run.at, total=run.job.total or None)
            except LeaseLost:  # this one was stopped for a while, as by the machine's sleep
                raise CommandError(
                    "Another process goes on with this import; see: izzy imports"
                ) from None

    def _print(self, job: Import) -> None:
        table = Table("", "taken", "merged", "skipped", "wrong")
        for row in job.report.get("kinds", []):
            figures = [f"{row[name]:,}" for name in ("taken", "merged", "skipped", "wrong")]
            table.add_row(row["kind"].replace("_", " "), *figures)
        console = Console(file=self.stdout)  # type: ignore[arg-type]  # writes like a file
        console.print(f"{'Would be imported' if job.dry_run else 'Imported'} ({job.reader}):")
        console.print(table)
        for row in job.report.get("skipped", []):
            self.stdout.write(
                f"{row['count']:,} × {row['kind'].replace('_', ' ')} skipped: {row['reason']}"
            )
        wrong = job.report.get("wrong", [])
        for row in wrong[:WRONG_SHOWN]:
            self.stdout.write(f"{row['place']}: {row['message']}")
        if len(wrong) > WRONG_SHOWN:
            self.stdout.write(f"… and {len(wrong) - WRONG_SHOWN} more")
        for note in job.report.get("notes", []):
            self.stdout.write(note)


def _chunks(file: str) -> Iterator[bytes]:
    if file == "-":
        yield from _read(sys.stdin.buffer)
        return
    with Path(file).open("rb") as opened:
        yield from _read(opened)


def _read(file: BinaryIO) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        yield chunk
