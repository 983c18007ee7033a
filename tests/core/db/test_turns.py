"""Writers of one database wait in line, whichever thread or process they are in."""

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import OperationalError, connection, connections, transaction

from apps.core.db.sqlite import base
from apps.core.db.sqlite.base import SUFFIX, Turn
from apps.core.models import InstanceState
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.skipif("TEST_DATABASE_URL" in os.environ, reason="the line is SQLite's")

CROWD = """
import sys, threading, time
from apps.core.db.sqlite.base import Turn

path, log = sys.argv[1], open(sys.argv[2], "a", buffering=1)

def write_for_ever():
    turn = Turn(path, 1000)
    while True:
        turn.take()
        log.write(".")
        log.flush()
        time.sleep(0.002)
        turn.give()

for _ in range(8):
    threading.Thread(target=write_for_ever, daemon=True).start()
print("writing", flush=True)
time.sleep(1000)
"""

HOLDER = """
import sys, time
from apps.core.db.sqlite.base import Turn
turn = Turn(sys.argv[1], 600)
turn.take()
print("mine", flush=True)
time.sleep(1000)
"""


@contextmanager
def process(code: str, *arguments: object) -> Iterator["subprocess.Popen[str]"]:
    """Another process, from its first line of output on until the end of the block."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    with subprocess.Popen(command, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline()
        try:
            yield child
        finally:
            child.kill()


def in_thread(function: Callable[[], Any]) -> Any:
    def with_own_connection() -> Any:
        try:
            return function()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(with_own_connection).result(timeout=PATIENCE)


def test_one_writer_beside_a_crowd_waits_for_few_of_them(tmp_path: Path) -> None:
    """Eight threads of another process write without a pause; of their turns few pass while we wait for ours."""
    log = tmp_path / "log"
    turn = Turn(str(tmp_path / "database"), PATIENCE)
    passed = []
    with process(CROWD, tmp_path / "database", log):
        eventually(lambda: log.stat().st_size > 50)
        for _ in range(50):
            before = log.stat().st_size
            turn.take()
            passed.append(log.stat().st_size - before)
            turn.give()
            time.sleep(0.005)
    turn.close()
    assert (
        statistics.median(passed) <= 2
    )  # now and then a busy machine stops us between looking and waiting


def test_who_dies_in_his_turn_leaves_it_to_the_next(tmp_path: Path) -> None:
    turn = Turn(str(tmp_path / "database"), PATIENCE)
    with process(HOLDER, tmp_path / "database") as holder:
        waiting = threading.Thread(target=turn.take)
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        holder.kill()
        waiting.join(PATIENCE)
        assert not waiting.is_alive()
    turn.close()


def test_a_turn_that_is_forgotten_is_given_back(tmp_path: Path) -> None:
    forgotten = Turn(str(tmp_path / "database"), 1)
    forgotten.take()
    del forgotten
    Turn(str(tmp_path / "database"), 1).take()


def test_where_the_file_may_not_be_made_threads_still_take_turns(tmp_path: Path) -> None:
    first, second = (Turn(str(tmp_path / "none" / "x"), 0.05) for _ in range(2))
    first.take()
    with pytest.raises(OperationalError):
        second.take()
    first.give()
    second.take()


@pytest.mark.django_db(transaction=True)
def test_who_waits_too_long_is_told_that_the_database_is_locked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(connection.settings_dict["OPTIONS"], "timeout", 0.05)

    def write() -> None:
        InstanceState.objects.create(key="second", value={})

    with transaction.atomic():
        InstanceState.objects.create(key="first", value={})
        with pytest.raises(OperationalError, match="database is locked"):
            in_thread(write)
    in_thread(write)
    assert InstanceState.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_statements_outside_a_transaction_wait_too() -> None:
    InstanceState.objects.create(key="shared", value={"by": "nobody"})
    began = threading.Event()

    def update() -> None:
        began.set()
        try:
            InstanceState.objects.filter(key="shared").update(value={"by": "the second"})
        finally:
            connections.close_all()

    with transaction.atomic():
        second = threading.Thread(target=update)
        second.start()
        began.wait(PATIENCE)
        second.join(0.1)
        assert second.is_alive()
        InstanceState.objects.filter(key="shared").update(value={"by": "the first"})
    second.join(PATIENCE)
    assert InstanceState.objects.get(key="shared").value == {"by": "the second"}


@pytest.mark.django_db(transaction=True)
def test_whatever_ends_a_transaction_ends_the_turn() -> None:
    def write() -> None:
        InstanceState.objects.create(key="other", value={})
        InstanceState.objects.filter(key="other").delete()

    def fail() -> None:
        with transaction.atomic():
            InstanceState.objects.create(key="lost", value={})
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    in_thread(write)
    with pytest.raises(OperationalError), connection.cursor() as cursor:
        cursor.execute("INSERT INTO nothing VALUES (1)")
    in_thread(write)
    atomic = transaction.atomic()
    atomic.__enter__()
    connection.close()
    in_thread(write)
    atomic.__exit__(None, None, None)
    assert not InstanceState.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_line_is_beside_the_database() -> None:
    InstanceState.objects.create(key="any", value={})
    name = str(connection.settings_dict["NAME"])
    assert name in base._lines
    assert Path(name + SUFFIX).stat().st_size == 0
