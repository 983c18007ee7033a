"""`manage.py doctor` before anything was set up."""

import os
import subprocess
import sys
from pathlib import Path

from django.conf import settings


def test_on_an_empty_database_it_says_what_to_do(tmp_path: Path) -> None:
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "izzysite.settings",
        "IZZY_DATA_DIR": str(tmp_path),
        "COLUMNS": "300",
    }
    command = [sys.executable, "manage.py", "doctor"]
    done = subprocess.run(
        command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "The database is not set up yet." in done.stdout
    assert "manage.py migrate" in done.stdout
    assert "The check itself failed" not in done.stdout
    assert "Traceback" not in done.stderr
