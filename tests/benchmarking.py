"""Runs a benchmark as `manage.py benchmark` does."""

import json
from io import StringIO
from typing import Any
from unittest.mock import patch

from django.core.management import call_command

from benchmarks import decay, report


def benchmark(*args: str) -> dict[str, Any]:
    """Returns its figures, of few rounds: what a test looks at is that they are there."""
    out = StringIO()
    with (
        patch.object(report, "ROUNDS", 5),
        patch.multiple(decay, ROUNDS=1, CALLS=5),
    ):
        call_command("benchmark", *args, "--json", "-", stdout=out)
    figures: dict[str, Any] = json.loads(out.getvalue())
    return figures
