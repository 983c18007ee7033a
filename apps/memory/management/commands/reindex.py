"""`manage.py reindex`: gives every passage the vectors that it lacks, for a new encoder or to repair, and adds what an older
index does not hold."""

from typing import IO, Any, cast

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from apps.core.errors import IzzyError
from apps.memory.notes.creation import notes_catch_up
from apps.search.embedders.engines import embedder_for
from apps.search.embedders.static import StaticEmbedder
from apps.search.filling import base_fill, side_empty, side_fill
from apps.search.models import EmbeddingSpace, Passage
from apps.search.spaces import Role, encoder_name


class Command(BaseCommand):
    help = (
        "Embeds every passage with IZZY_EMBEDDER (or --embedder) beside the bundled vectors, which are repaired where "
        "they are missing or wrong. Notes are made findable by tags and category where they are not yet. Search goes on "
        "meanwhile; interrupted, the same command continues where it stopped. The worker does the same in the background. "
        "With --embedder static the vectors of an encoder are removed."
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
        if encoder_name() not in {"", name}:
            raise CommandError(
                f"IZZY_EMBEDDER names {encoder_name()}, which the worker would embed with again: set IZZY_EMBEDDER={name} first."
            )
        if caught_up := notes_catch_up():
            self.stdout.write(f"{caught_up} notes are now found by their tags and category too.")
        if repaired := base_fill(Passage.objects.all()):
            self.stdout.write(f"{repaired} passages have their bundled vectors anew.")
        if name == StaticEmbedder.name:
            side_empty()
            self.stdout.write(self.style.SUCCESS("Search now uses the bundled vectors alone."))
        else:
            self._fill(name)

    def _fill(self, name: str) -> None:
        columns = (TextColumn(f"[bold]{name}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        try:
            with Progress(*columns, console=Console(file=cast("IO[str]", self.stdout))) as progress:
                task = progress.add_task("embedding")
                side_fill(
                    name,
                    anew=True,
                    progress=lambda done, total: progress.update(task, completed=done, total=total),
                )
        except IzzyError as error:
            raise CommandError(
                f"{error.message} What was done is kept: run the command again to go on."
            ) from error
        dimension = EmbeddingSpace.objects.get(role=Role.SIDE).dimension
        said = f"Every passage has its vector of {name} ({dimension} dimensions) beside the bundled one."
        self.stdout.write(self.style.SUCCESS(said))
        if name != settings.IZZY_EMBEDDER:
            self.stdout.write(f"Set IZZY_EMBEDDER={name}: search uses them from then on.")
