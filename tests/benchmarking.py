"""Runs a benchmark as `manage.py benchmark` does."""

import json
from io import StringIO
from typing import Any

from django.core.management import call_command


def benchmark(*args: str) -> dict[str, Any]:
    """Returns its figures."""
    out = StringIO()
    call_command("benchmark", *args, "--json", "-", stdout=out)
    figures: dict[str, Any] = json.loads(out.getvalue())
    return figures
