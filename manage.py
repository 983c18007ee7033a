#!/usr/bin/env python
"""Izzy's command line: every administrative task starts here."""

import gc
import io
import os
import select
import sys
from typing import Any

ALONE = {"restore", "move_database"}
"""These look themselves that nothing else runs with the data directory; each other command counts as such for its life."""


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "izzysite.settings")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(
            stream, io.TextIOWrapper
        ):  # a sign that the locale does not know must not end a command
            stream.reconfigure(errors="replace")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import ManagementUtility
        from django.db import DatabaseError
    except ImportError:
        sys.exit("Django is not installed here: run `make setup`, then `.venv/bin/python manage.py …`.")

    class Loaded(ManagementUtility):
        """Collects no garbage until all apps are loaded: what they bring stays, and to look through it takes a fifth of a start."""

        def fetch_command(self, subcommand: str) -> Any:
            gc.enable()
            command = super().fetch_command(subcommand)
            if subcommand not in ALONE:
                hold_data_directory()
            return command

    try:
        gc.disable()
        Loaded(sys.argv).execute()
        if sys.stdout:
            sys.stdout.flush()
    except ImproperlyConfigured as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"Izzy's settings: {error}")
    except KeyboardInterrupt:
        if "--traceback" in sys.argv:
            raise
        sys.stderr.write("Interrupted.\n")
        sys.stderr.flush()
        sys.exit(130)
    except BrokenPipeError:
        if not output_is_cut():
            raise
        # Whoever read the output has enough; Python would flush once more and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (DatabaseError, OSError) as error:
        from apps.core.db.troubles import explain

        trouble = explain(error)
        if trouble is None or "--traceback" in sys.argv:
            raise
        sys.exit(
            f"{trouble.message} {trouble.hint}\n({'The database' if isinstance(error, DatabaseError) else 'The system'} says: {error})"
        )


def hold_data_directory() -> None:
    """Nothing is put in place of what lies there while this process lives: what it writes would be lost."""
    from pathlib import Path

    from django.conf import settings
    from django.core.management import CommandError

    from apps.core.jobs.running import data_directory_hold

    try:
        data_directory_hold(Path(settings.IZZY_DATA_DIR))
    except CommandError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


def output_is_cut() -> bool:
    """Whether nobody reads what is printed any more."""
    looked = select.poll()
    looked.register(sys.stdout.fileno(), 0)
    return bool(looked.poll(0))


if __name__ == "__main__":
    main()
