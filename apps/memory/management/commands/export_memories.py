"""`manage.py export_memories --user NAME [FILE]`: takes all of a user's rows out."""

import sys
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.models import User
from apps.core.db.writing import one_view
from apps.core.errors import IzzyError
from apps.core.ids import parse_id
from apps.core.private import private
from apps.memory.transfer.exporting import conversation_export, export_lines, export_markdown


class Command(BaseCommand):
    help = "Takes out all of a user's notes, files, conversations and capabilities, as JSON Lines or Markdown."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", nargs="?", default="-", help="where to; - (the default) is the output"
        )
        parser.add_argument("--user", required=True, metavar="NAME")
        parser.add_argument("--format", choices=("jsonl", "markdown"), default="jsonl")
        parser.add_argument("--conversation", metavar="ID", help="only this one, as Markdown")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']}.")
        make = export_lines if options["format"] == "jsonl" else export_markdown
        with one_view():  # all of it as it is at one moment
            try:
                parts = make(user.pk)
                if options["conversation"]:
                    document = conversation_export(user.pk, parse_id(options["conversation"]))
                    parts = (part.encode() for part in document.parts)
                self._write(options["file"], parts)
            except IzzyError as error:
                raise CommandError(error.message) from error
            except BrokenPipeError:
                raise
            except OSError as error:
                raise CommandError(f"{options['file']} cannot be written: {error.strerror}") from error

    def _write(self, target: str, parts: Any) -> None:
        if target == "-":
            output: BinaryIO | None = getattr(self.stdout, "buffer", None)
            output = output or getattr(sys.stdout, "buffer", None)
            assert output is not None  # noqa: S101  a terminal and a pipe have one
            for part in parts:
                output.write(part)
            output.flush()
            return
        beside = Path(f"{target}.part")  # half a file never stands where a whole one is looked for
        try:
            beside.unlink(missing_ok=True)
            with open(beside, "xb", opener=private) as file:
                size = sum(file.write(part) for part in parts)
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
        self.stdout.write(f"{size:,} bytes written to {target}")
