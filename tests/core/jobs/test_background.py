"""Work in a thread that a sweep starts."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from apps.core.jobs.worker import Background
from tests.waiting import PATIENCE


def start_and_wait(background: Background) -> None:
    background.start()
    if background._thread is not None:
        background._thread.join(PATIENCE)


def test_it_works_once_at_a_time_and_again_when_started() -> None:
    done: list[int] = []
    go_on = threading.Event()

    def work() -> None:
        done.append(1)
        go_on.wait(PATIENCE)

    background = Background("some work", work)
    background.start()
    first = background._thread
    background.start()
    assert background._thread is first
    go_on.set()
    assert first is not None
    first.join(PATIENCE)
    start_and_wait(background)
    assert len(done) == 2


def test_it_rests_as_long_as_the_work_says() -> None:
    done: list[int] = []

    def work() -> timedelta:
        done.append(1)
        return timedelta(hours=1)

    background = Background("some work", work)
    start_and_wait(background)
    start_and_wait(background)
    assert done == [1]


def test_what_fails_is_logged_and_rests(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []

    def work() -> None:
        done.append(1)
        raise ValueError("broken")

    background = Background("some work", work)
    start_and_wait(background)
    start_and_wait(background)
    assert done == [1]
    assert "some work failed" in caplog.text


@pytest.mark.django_db
def test_it_gives_its_connection_back() -> None:
    """On PostgreSQL a thread's connection would count as lent for ever."""
    used: list[BaseDatabaseWrapper] = []

    def work() -> None:
        connection.ensure_connection()
        used.append(connections["default"])

    start_and_wait(Background("some work", work))
    assert [one.connection for one in used] == [None]
