"""`move_database`: an instance goes to PostgreSQL with everything it has, also when it is interrupted."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from tests.peers.databases import Database
from tests.peers.postgres import Postgres, execute, postgres
from tests.peers.prepared import prepared
from tests.waiting import PATIENCE

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif("TEST_DATABASE_URL" in os.environ, reason="it begins with a file"),
]

FILL = """
from apps.accounts.models import User
from apps.core.models import InstanceState
from apps.memory.notes.creation import memory_bulk_create
from tests.site.belongings import make_belongings
InstanceState.objects.create(key="numbers", value=[-0.0, 1e22, 1e-07, 0.1, 2**60, 10**400, {"deep": -0.0}])
alice = User.objects.get(username="alice")
make_belongings(alice)
for start in (0, 700):
    memory_bulk_create(
        user_id=alice.pk,
        drafts=[{"content": f"Walnut number {at} lies in the shed."} for at in range(start, start + 700)],
    )
"""


class Instance:
    """A data directory, filled; commands run on it and on a database of the server."""

    def __init__(self, folder: Path, server: Postgres) -> None:
        self.server, self.name = server, f"moved_{folder.parent.name}".replace("-", "_").lower()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("IZZY_")},
            "DJANGO_SETTINGS_MODULE": "izzysite.settings",
            "IZZY_EMBEDDER": "static",
            "IZZY_ENV_FILE": "",
            "IZZY_DATA_DIR": str(folder),
        }
        prepared().copy(folder)
        self.database = Database(folder)

    @property
    def url(self) -> str:
        return self.server.url(self.name)

    def begin(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        program = [] if arguments[0] == "-c" else ["manage.py"]
        return subprocess.Popen(
            [sys.executable, *program, *arguments],
            cwd=settings.BASE_DIR,
            env=self.environment | environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run(self, *arguments: str, **environment: str) -> tuple[int, str]:
        process = self.begin(*arguments, **environment)
        said, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, said


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


@pytest.fixture
def instance(tmp_path: Path, server: Postgres) -> Instance:
    made = Instance(tmp_path / "data", server)
    code, said = made.run("shell", "-v", "0", "-c", FILL)
    assert code == 0, said
    execute(server.url("postgres"), f"CREATE DATABASE {made.name}")
    return made


KILLED = """
import os, signal
import django
django.setup()
from django.core.management import call_command
from apps.core.db import copying
real, written = copying._Copy._write, []
def write(self, model, rows):
    if written.count("memory_memory"):
        os.kill(os.getpid(), signal.SIGKILL)
    written.append(model._meta.db_table)
    real(self, model, rows)
copying._Copy._write = write
call_command("move_database", "{url}")
"""
"""It ends with a part of the notes copied."""

FIND = """
from apps.accounts.models import User
from apps.search.selectors import search
from apps.search.documents import Source
alice = User.objects.get(username="alice")
print("FOUND", *[hit.text for hit in search(alice.pk, "walnut number 1234", top_k=1)])
"""


def test_it_moves_goes_on_after_a_kill_is_backed_up_restored_and_goes_back(
    instance: Instance, server: Postgres, tmp_path: Path
) -> None:
    code, said = instance.run("-c", KILLED.format(url=instance.url))
    assert code == -signal.SIGKILL, said
    code, said = instance.run("move_database", instance.url)
    assert code == 0, said
    assert "Going on with the copy" in said
    assert "Copied and compared" in said

    moved = {"DATABASE_URL": instance.url}
    code, said = instance.run("shell", "-v", "0", "-c", FIND, **moved)
    assert "FOUND Walnut number 1234 lies in the shed." in said
    code, said = instance.run("move_database", instance.url)
    assert (code, "is not empty" in said) == (1, True), said

    code, said = instance.run("backup", str(tmp_path / "backup"), **moved)
    assert code == 0, said
    again = f"{instance.name}_again"
    execute(server.url("postgres"), f"CREATE DATABASE {again}")
    restored = {"DATABASE_URL": server.url(again), "IZZY_DATA_DIR": str(tmp_path / "again")}
    code, said = instance.run("restore", str(tmp_path / "backup"), **restored)
    assert code == 0, said
    assert "izzy.sqlite3" not in {path.name for path in (tmp_path / "again").iterdir()}
    code, said = instance.run("shell", "-v", "0", "-c", FIND, **restored)
    assert "FOUND Walnut number 1234 lies in the shed." in said
    code, said = instance.run("restore", str(tmp_path / "backup"), "--force", **restored)
    assert (code, "is not empty" in said) == (1, True), said

    instance.environment["IZZY_DATA_DIR"] = str(tmp_path / "backup")
    code, said = instance.run("shell", "-v", "0", "-c", FIND)
    assert "FOUND Walnut number 1234 lies in the shed." in said
    before, after = (Database(tmp_path / name) for name in ("data", "backup"))
    for (table,) in before.rows(
        "select name from sqlite_master where type = 'table' and sql not like '%fts5%'"
    ):
        if not table.startswith(("search_terms", "sqlite_", "django_migrations")):
            counted = f'select count(*) from "{table}"'
            assert (table, after.rows(counted)) == (table, before.rows(counted))


def test_a_database_in_use_or_out_of_reach_is_refused(instance: Instance, server: Postgres) -> None:
    code, said = instance.run("move_database", server.url("nowhere"))
    assert (code, "does not exist" in said, "Traceback" in said) == (1, True, False), said
    code, said = instance.run("move_database", "mysql://somewhere/izzy")
    assert (code, "must look like postgresql://" in said) == (1, True), said
