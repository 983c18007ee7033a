"""Hosts with other keys than the first one do not start, and migrations run one at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections
from pytest_django import Settings

from apps.core.db.alone import alone
from apps.core.db.writing import LOCK_SECONDS
from apps.core.keys import STATE, check_keys, refuse_other_keys
from apps.core.models import InstanceState
from tests.waiting import PATIENCE, eventually

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is one that several hosts share."""
    monkeypatch.setattr("apps.core.keys.database_file", lambda: None)


@pytest.mark.usefixtures("server")
def test_the_first_host_sets_the_keys_and_another_one_with_the_same_starts() -> None:
    refuse_other_keys()
    refuse_other_keys()
    assert check_keys().ok


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize(
    ("setting", "named"),
    [("SECRET_KEY", "IZZY_SECRET_KEY"), ("IZZY_SECRETS_KEY", "IZZY_SECRETS_KEY")],
)
def test_a_host_with_another_key_is_refused_by_its_name(
    settings: Settings, setting: str, named: str
) -> None:
    refuse_other_keys()
    setattr(settings, setting, "another-key-than-the-first-host-has")
    with pytest.raises(CommandError, match=f"^{named} of this process") as refused:
        refuse_other_keys()
    assert "prepare --accept-keys" in str(refused.value)
    assert not check_keys().ok
    for command in ("worker", "web"):
        with pytest.raises(CommandError, match=named):
            call_command(command)


@pytest.mark.usefixtures("server")
def test_what_is_kept_of_a_key_tells_nothing_of_it(settings: Settings) -> None:
    refuse_other_keys()
    kept = str(InstanceState.objects.get(key=STATE).value)
    assert settings.SECRET_KEY not in kept
    assert settings.IZZY_SECRETS_KEY not in kept


@pytest.mark.usefixtures("server")
def test_keys_changed_on_purpose_are_accepted_once_that_is_said(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    refuse_other_keys()
    settings.SECRET_KEY = "another-key-than-the-first-host-has"
    with pytest.raises(CommandError, match="IZZY_SECRET_KEY"):
        call_command("prepare")
    call_command("prepare", accept_keys=True)
    assert "The database is up to date." in capsys.readouterr().out
    refuse_other_keys()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a database in a file")
def test_a_database_in_a_file_goes_with_whatever_keys_lie_beside_it(settings: Settings) -> None:
    refuse_other_keys()
    settings.SECRET_KEY = "another-key-than-the-first-host-has"
    refuse_other_keys()
    assert not InstanceState.objects.filter(key=STATE).exists()


def test_one_process_at_a_time_prepares_the_database() -> None:
    order: list[str] = []
    inside = threading.Event()

    def other() -> None:
        inside.set()
        try:
            with alone("test"):
                order.append("second")
        finally:
            connections.close_all()

    with alone("test"):
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(PATIENCE)
        with alone("another"):  # which nobody holds
            order.append("first")
    thread.join(PATIENCE)
    assert order == ["first", "second"]


PATIENT = """
SELECT count(*) = 2 FROM pg_stat_activity JOIN pg_locks USING (pid) WHERE locktype = 'advisory'
AND clock_timestamp() - state_change > interval '1 s'
"""


@pytest.mark.skipif(connection.vendor != "postgresql", reason="a server with time limits")
def test_who_prepares_and_who_waits_for_that_may_take_longer_than_the_limits_of_a_transaction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrapper = type(connections["default"])
    copy = wrapper.copy
    order: list[str] = []

    def limits(one: Any, lock: str, idle: str) -> None:
        with one.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = '{lock}'")
            cursor.execute(f"SET idle_in_transaction_session_timeout = '{idle}'")

    def impatient(self: Any, alias: str | None = None) -> Any:
        one = copy(self, alias)
        close = one.close

        def closed() -> None:
            limits(one, f"{LOCK_SECONDS}s", "0")  # the pool hands the connection on as it is
            close()

        limits(one, "100ms", "100ms")
        one.close = closed
        return one

    def other() -> None:
        try:
            with alone("test"):
                order.append("second")
        finally:
            connections.close_all()

    def patient() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(PATIENT)
            return bool(cursor.fetchone()[0])

    monkeypatch.setattr(wrapper, "copy", impatient)
    with ThreadPoolExecutor(1) as pool:
        with alone("test"):
            second = pool.submit(other)
            eventually(lambda: second.done() or patient())
            order.append("first")
        second.result(PATIENCE)
    assert order == ["first", "second"]
