#!/usr/bin/env python
"""Izzy's command line: every administrative task starts here."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "izzysite.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
        from django.db import DatabaseError
    except ImportError:
        sys.exit("Django is not installed here: run `make setup`, then `.venv/bin/python manage.py …`.")

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"Izzy's settings: {error}")
    except DatabaseError as error:
        from apps.core.db.troubles import explain

        trouble = explain(error)
        if trouble is None or "--traceback" in sys.argv:
            raise
        sys.exit(f"{trouble.message} {trouble.hint}\n(The database says: {error})")


if __name__ == "__main__":
    main()
