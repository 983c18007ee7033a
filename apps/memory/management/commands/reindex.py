"""`manage.py reindex`: makes all vectors anew, for a new embedder or to repair the present one's, and adds what an older
index does not hold."""

from typing import IO, Any, cast

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from apps.core.errors import IzzyError
from apps.memory.notes.indexing import notes_catch_up
from apps.search.embedders.engines import embedder_for
from apps.search.models import EmbeddingSpace
from apps.search.spaces import space_build, vectors_clear


class Command(BaseCommand):
    help = (
        "Embeds every passage with IZZY_EMBEDDER (or --embedder) beside the vectors in use, and switches at the end. "
        "Notes are made findable by tags and category where they are not yet. Search goes on meanwhile; interrupted, the "
        "same command continues where it stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--embedder", default="", help="for example static or ollama:nomic-embed-text"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["embedder"] or settings.IZZY_EMBEDDER
        try:
            embedder_for(name)
        except IzzyError as error:
            raise CommandError(error.message) from error
        if caught_up := notes_catch_up():
            self.stdout.write(f"{caught_up} notes are now found by their tags and category too.")
        columns = (TextColumn(f"[bold]{name}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        try:
            with Progress(*columns, console=Console(file=cast("IO[str]", self.stdout))) as progress:
                task = progress.add_task("embedding")
                space = space_build(
                    name=name,
                    progress=lambda done, total: progress.update(task, completed=done, total=total),
                )
        except IzzyError as error:
            raise CommandError(
                f"{error.message} What was done is kept: run the command again to go on."
            ) from error
        free = EmbeddingSpace.Slot.B if space.slot == EmbeddingSpace.Slot.A else EmbeddingSpace.Slot.A
        vectors_clear(slot=free)
        self.stdout.write(self.style.SUCCESS(f"Search now uses {name} ({space.dimension} dimensions)."))
        if name != settings.IZZY_EMBEDDER:
            self.stdout.write(f"Set IZZY_EMBEDDER={name} so that new installations of this data agree.")
