"""A web process and a worker write at the same time, and nobody is told that the database is locked."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, connections, transaction

from apps.core.models import InstanceState
from tests.waiting import PATIENCE

pytestmark = pytest.mark.skipif(connection.vendor != "sqlite", reason="how SQLite's writers queue")

WRITERS = 50
ROUNDS = 4
OTHER_PROCESS_ROUNDS = 60

ANOTHER_PROCESS = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "izzysite.settings"
import django
django.setup()
from django.conf import settings
from django.db import connections, transaction
connections["default"].settings_dict["NAME"] = sys.argv[1]
from apps.core.models import InstanceState
from tests.waiting import PATIENCE
for _ in range(int(sys.argv[2])):
    with transaction.atomic():
        row = InstanceState.objects.get(key="shared")
        row.value = {"count": row.value["count"] + 1}
        row.save()
"""


def add_one(_: int) -> None:
    """Read, then write, in one transaction: what fails at once in a deferred one, whatever the busy timeout."""
    try:
        for _round in range(ROUNDS):
            with transaction.atomic():
                row = InstanceState.objects.get(key="shared")
                row.value = {"count": row.value["count"] + 1}
                row.save()
    finally:
        connections.close_all()


@pytest.mark.django_db(transaction=True)
def test_fifty_writers_beside_another_process_lose_nothing_and_meet_no_lock() -> None:
    InstanceState.objects.create(key="shared", value={"count": 0})
    database = str(connection.settings_dict["NAME"])
    command = [sys.executable, "-c", ANOTHER_PROCESS, database, str(OTHER_PROCESS_ROUNDS)]
    other = subprocess.Popen(command, cwd=Path(settings.BASE_DIR), stderr=subprocess.PIPE, text=True)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(add_one, range(WRITERS)))
    _, complaint = other.communicate(timeout=PATIENCE)
    assert other.returncode == 0, complaint
    expected = WRITERS * ROUNDS + OTHER_PROCESS_ROUNDS
    assert InstanceState.objects.get(key="shared").value == {"count": expected}


@pytest.mark.django_db(transaction=True)
def test_readers_go_on_while_somebody_writes() -> None:
    InstanceState.objects.create(key="shared", value={"count": 1})

    def read() -> object:
        try:
            return InstanceState.objects.get(key="shared").value
        finally:
            connections.close_all()

    with transaction.atomic(), ThreadPoolExecutor(1) as pool:
        InstanceState.objects.filter(key="shared").update(value={"count": 2})
        assert pool.submit(read).result(timeout=PATIENCE) == {"count": 1}


@pytest.mark.django_db
def test_the_database_is_tuned_as_the_settings_say() -> None:
    with connection.cursor() as cursor:
        values = {
            name: cursor.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    assert values == {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1}
