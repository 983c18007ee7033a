"""A database file of which a part was overwritten: what is wrong is said, and what an index holds is written anew."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from tests.waiting import PATIENCE

PAGE = 4096
SETUP = """
from apps.accounts.models import User
from apps.memory.notes.creation import memory_bulk_create
user = User.objects.create_user("alice")
memory_bulk_create(user_id=user.pk, drafts=[{"content": f"Note {n} about the boiler " * 9} for n in range(200)])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data directory with two hundred notes."""
    if connection.vendor != "sqlite":
        pytest.skip("this engine keeps no file of ours")
    assert manage(tmp_path, "migrate", "-v0")[0] == 0
    assert manage(tmp_path, "shell", "-c", SETUP)[0] == 0
    return tmp_path


def manage(folder: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "izzysite.settings", "IZZY_DATA_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    return done.returncode, done.stdout or done.stderr


def checked(folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    ended, said = manage(folder, "check_integrity", "--json", *options)
    return ended, json.loads(said)


def pages_of(folder: Path, name: str) -> list[int]:
    """The pages of a table or index, from 0."""
    script = (
        "import sqlite3, sys; database = sqlite3.connect(sys.argv[1]); "
        "print(database.execute('SELECT rootpage FROM sqlite_master WHERE name = ?', sys.argv[2:]).fetchone()[0])"
    )
    done = subprocess.check_output([sys.executable, "-c", script, str(folder / "izzy.sqlite3"), name])
    return [int(done) - 1]


def overwritten(folder: Path, pages: list[int]) -> None:
    with (folder / "izzy.sqlite3").open("r+b") as file:
        for page in pages:
            file.seek(page * PAGE)
            file.write(random.Random(page).randbytes(PAGE))


@pytest.mark.long
def test_pages_that_were_overwritten_are_told_and_nothing_is_claimed_to_be_repaired(
    folder: Path,
) -> None:
    assert checked(folder)[0] == 0
    overwritten(folder, pages_of(folder, "memory_memory"))
    ended, result = checked(folder, "--fix")
    assert ended == 1
    assert not result["clean"]
    found = [each for each in result["findings"] if each["check"] == "database: file"]
    assert "The database file is damaged" in found[0]["message"]
    assert "restore the newest backup" in found[0]["advice"]
    assert not any(each["fixed"] for each in found)
    (folder / "izzy.sqlite3").write_bytes(b"this is no database at all" * 400)
    ended, result = checked(folder)
    assert ended == 1
    assert "file is not a database" in result["findings"][0]["message"]
    ended, said = manage(folder, "backup", str(folder / "../backup_of_damaged"))
    assert (ended, "The database file is damaged" in said) == (1, True), said
    assert not list(folder.parent.glob("*backup_of_damaged*"))
