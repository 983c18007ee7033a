"""A connection to SQLite that is closed is used again by whoever opens the next one, if nothing of its past shows there."""

import gc
import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.utils import OperationalError

from apps.core.db.sqlite import base
from apps.core.db.sqlite.base import DatabaseWrapper, Idle

pytestmark = pytest.mark.skipif("TEST_DATABASE_URL" in os.environ, reason="a server's have a pool")

Open = Callable[[], DatabaseWrapper]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "some.sqlite3"
    _make(path, "first")
    return path


def _make(path: Path, word: str) -> None:
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE word (word TEXT)")
        made.executemany("INSERT INTO word VALUES (?)", [(word,)] * 1000)
    made.close()


@pytest.fixture
def open_(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens a connection to the file at `path`, as another thread of the process would."""
    monkeypatch.setattr(base, "idle", Idle(most=2))
    opened: list[DatabaseWrapper] = []

    def open_() -> DatabaseWrapper:
        wrapper = DatabaseWrapper(connection.settings_dict | {"NAME": str(path)}, alias="default")
        wrapper.connect()
        opened.append(wrapper)
        return wrapper

    yield open_
    for wrapper in opened:
        wrapper.close()
    base.idle.close()


def raw(wrapper: DatabaseWrapper) -> Any:
    return wrapper.connection


def read(wrapper: DatabaseWrapper) -> str:
    with wrapper.cursor() as cursor:
        return str(cursor.execute("SELECT word FROM word").fetchall()[-1][0])


def is_open(one: sqlite3.Connection) -> bool:
    try:
        one.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


@pytest.mark.django_db
def test_a_file_is_let_go_for_who_wants_it_alone(open_: Open, path: Path) -> None:
    one = open_()
    assert read(one) == "first"
    with one.cursor() as cursor:
        cursor.execute("PRAGMA journal_mode=WAL")
    one.close()
    one.close_pool()
    with sqlite3.connect(path, timeout=0) as alone:
        assert alone.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
    alone.close()


@pytest.mark.django_db
def test_the_next_one_is_the_last_that_was_closed(open_: Open) -> None:
    one = open_()
    first = raw(one)
    assert read(one) == "first"
    one.close()
    two = open_()
    assert raw(two) is first
    assert read(two) == "first"
    assert raw(open_()) is not first  # it is in use


@pytest.mark.django_db
def test_no_more_are_kept_than_may_be(open_: Open) -> None:
    wrappers = [open_() for _ in range(4)]
    connections = [raw(wrapper) for wrapper in wrappers]
    for wrapper in wrappers:
        wrapper.close()
    assert [is_open(one) for one in connections] == [True, True, False, False]
    base.idle.close()
    assert not any(map(is_open, connections))


@pytest.mark.django_db
def test_a_file_that_was_replaced_is_read_anew(open_: Open, path: Path) -> None:
    one = open_()
    old = raw(one)
    one.close()
    _make(path.with_name("other"), "second")
    path.with_name("other").replace(path)
    assert read(open_()) == "second"
    assert not is_open(old)


@pytest.mark.django_db
def test_one_in_the_middle_of_a_result_is_not_used_again(open_: Open) -> None:
    one = open_()
    held = one.cursor().cursor
    held.execute("SELECT word FROM word")
    assert held.fetchone() == ("first",)
    old = raw(one)
    one.close()
    assert not is_open(old)
    with open_().cursor() as cursor:
        cursor.execute("UPDATE word SET word = 'second'")
    assert read(open_()) == "second"


@pytest.mark.django_db
def test_one_that_met_an_error_or_left_a_transaction_open_is_not_used_again(open_: Open) -> None:
    failed = open_()
    with pytest.raises(OperationalError), failed.cursor() as cursor:
        cursor.execute("SELECT nonsense FROM word")
    begun = open_()
    begun.cursor().execute("BEGIN")
    gc.collect()
    for wrapper in (failed, begun):
        old = raw(wrapper)
        wrapper.close()
        assert not is_open(old)


@pytest.mark.django_db
def test_a_child_takes_none_of_its_parents(open_: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    one = open_()
    old = raw(one)
    one.close()
    with monkeypatch.context() as child:
        child.setattr(os, "getpid", lambda: 1)
        assert raw(open_()) is not old
        base.idle.close()
    assert is_open(old)
    assert raw(open_()) is old


@pytest.mark.django_db
def test_a_database_in_memory_is_nobody_elses(open_: Open) -> None:
    wrapper = DatabaseWrapper(connection.settings_dict | {"NAME": ":memory:"}, alias="default")
    wrapper.connect()
    assert wrapper._is_kept() is False
