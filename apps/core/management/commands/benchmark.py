"""`manage.py benchmark NAME [options]`: runs one of the modules in `benchmarks/`, prints its tables and JSON.

It measures with the bundled vectors alone, unless IZZY_EMBEDDER is set or the benchmark's `--encoder` asks for `minilm` beside them.
A module exposes `add_arguments(parser)` and `run(options) -> Report` (`benchmarks.report`). Its docstring's first
line is its help.
"""

import importlib
import json
import os
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import IO, Any, cast

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.test import override_settings
from rich.console import Console

SUPPORT = {"report"}


def benchmark_names() -> list[str]:
    """The names that can be run: the modules of `benchmarks/` but those that only support others."""
    folder = Path(settings.BASE_DIR) / "benchmarks"
    names = (module.name for module in pkgutil.iter_modules([str(folder)]))
    return sorted(name for name in names if name not in SUPPORT and not name.startswith("_"))


def load_benchmark(name: str) -> ModuleType:
    """The module of that name; raises CommandError where it does not keep the contract."""
    module = importlib.import_module(f"benchmarks.{name}")
    missing = [part for part in ("add_arguments", "run") if not callable(getattr(module, part, None))]
    if missing:
        raise CommandError(f"benchmarks/{name}.py has no {' and no '.join(missing)}")
    return module


class Command(BaseCommand):
    help = "Measures Izzy: prints a table and JSON, each figure beside a baseline of the same run."

    def add_arguments(self, parser: CommandParser) -> None:
        choices = parser.add_subparsers(dest="name", required=True, metavar="NAME")
        for name in benchmark_names():
            module = load_benchmark(name)
            child = choices.add_parser(name, help=(module.__doc__ or "").strip().split("\n")[0])
            child.add_argument(
                "--json", metavar="FILE", help="write the figures to this file; - prints only them"
            )
            module.add_arguments(child)

    def handle(self, *args: Any, **options: Any) -> None:
        target = options.pop("json")
        if target and target != "-":
            try:
                Path(target).touch()
            except OSError as error:  # before the minutes that measuring takes, not after
                raise CommandError(f"{target} cannot be written: {error.strerror}") from error
        # What everything else is measured beside; Izzy's own processes that a benchmark starts are as they are by themselves.
        with override_settings(IZZY_EMBEDDER=os.environ.get("IZZY_EMBEDDER") or "static"):
            report = load_benchmark(options["name"]).run(options)
        figures = json.dumps(report.to_json(), indent=2, ensure_ascii=False)
        if target != "-":
            report.print(Console(file=cast("IO[str]", self.stdout)))
        if target and target != "-":
            Path(target).write_text(figures + "\n", encoding="utf-8")
            self.stdout.write(f"figures written to {target}")
        else:
            self.stdout.write(figures)
