import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from apps.core import health
from apps.core.health import (
    CheckResult,
    check_data_directory,
    check_database,
    check_disk,
    not_set_up,
    register_check,
    run_check,
    unsafe_settings,
)
from apps.core.jobs import worker
from apps.core.jobs.worker import Sweep, SweepThread, beat, check_worker, last_beat, register_sweep
from apps.core.models import InstanceState
from apps.core.registries import connection_tests

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_sweeps", {})
    monkeypatch.setattr(health, "_checks", {})
    monkeypatch.setattr(health, "_recent", {})
    monkeypatch.setattr(worker, "close_old_connections", lambda: None)


def test_a_sweep_that_fails_is_logged_and_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ran: list[str] = []

    def fail() -> None:
        raise ValueError("broken")

    thread = SweepThread()
    thread.run_sweep(Sweep("bad", fail, timedelta(0)))
    thread.run_sweep(Sweep("good", lambda: ran.append("good"), timedelta(0)))
    assert ran == ["good"]
    assert "sweep bad failed" in caplog.text


def test_registering_a_name_again_replaces_it() -> None:
    register_sweep("x", lambda: None, timedelta(hours=1))
    register_sweep("x", lambda: None, timedelta(hours=2))
    assert [sweep.every for sweep in worker.sweeps()] == [timedelta(hours=2)]


def test_the_heartbeat_tells_a_living_worker_from_a_dead_one() -> None:
    assert not check_worker().ok
    beat()
    assert check_worker().ok
    InstanceState.objects.update(updated_at=timezone.now() - timedelta(minutes=5))
    result = check_worker()
    assert not result.ok
    assert "manage.py" in result.hint


def test_a_worker_that_ended_in_order_leaves_the_word_to_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beat()
    monkeypatch.setattr(worker, "PROCESS", "another")
    beat()
    worker._beat_ends()
    assert check_worker().ok
    monkeypatch.undo()
    worker._beat_ends()
    assert "is not running" in check_worker().message


def test_a_heartbeat_from_before_the_clock_was_set_back_is_no_living_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(worker, "PROCESS", "dead")
        beat()
    InstanceState.objects.update(updated_at=timezone.now() + timedelta(hours=1))
    assert not check_worker().ok
    assert last_beat() is None
    beat()
    assert check_worker().ok
    assert [row.key for row in InstanceState.objects.all()] == [worker._own_key()]
    InstanceState.objects.update(updated_at=timezone.now() + timedelta(seconds=20))
    assert check_worker().ok


def test_a_check_that_crashes_is_a_finding() -> None:
    def crash() -> CheckResult:
        raise RuntimeError("secret detail")

    register_check("x", crash)
    result = run_check(health.checks()[0])
    assert not result.ok
    assert "RuntimeError" in result.message
    assert "secret detail" not in result.message


def test_essential_checks_come_first() -> None:
    register_check("a", lambda: CheckResult(True, ""))
    register_check("z", lambda: CheckResult(True, ""), essential=True)
    assert [check.name for check in health.checks()] == ["z", "a"]


def test_readiness_follows_the_essential_checks_alone_and_asks_not_too_often(client: Client) -> None:
    asked: list[str] = []

    def essential() -> CheckResult:
        asked.append("essential")
        return CheckResult(len(asked) > 1, "")

    register_check("essential", essential, essential=True)
    register_check("other", lambda: CheckResult(False, "a detail"))
    register_check("lacking", lambda: not_set_up("", gives="", how=""), essential=True)
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json() == {
        "status": "unavailable",
        "checks": {"essential": False, "lacking": True, "other": False},
        "not_set_up": ["lacking"],
    }
    client.get("/readyz")
    assert len(asked) == 1
    health._recent.clear()
    response = client.get("/readyz")
    assert (response.status_code, response.json()["status"]) == (200, "ready")


def test_the_doctor_says_what_to_do_and_fails_where_something_essential_is_missing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    register_check("fine", lambda: CheckResult(True, "all well"))
    register_check("lacking", lambda: not_set_up("not there", gives="It adds much.", how="install it"))
    register_check("ill", lambda: CheckResult(False, "no answer", "look at it"))
    call_command("doctor")
    shown = " ".join(capsys.readouterr().out.split())
    assert "all well" in shown
    assert "install it" in shown
    assert re.search(r"works │ fine .* not set up │ lacking", shown.replace("broken │ ill", "")), shown
    assert "broken │ ill" in shown
    register_check("base", lambda: CheckResult(False, "broken", "mend it"), essential=True)
    with pytest.raises(SystemExit) as caught:
        call_command("doctor")
    assert caught.value.code == 1


def test_the_doctor_asks_the_model_only_where_it_is_told_to(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask() -> CheckResult:
        asked.append("model")
        return CheckResult(False, "The key is [wrong].", "Correct it")

    for name in list(connection_tests):
        monkeypatch.delitem(connection_tests, name)
    monkeypatch.setitem(connection_tests, "model", ask)
    call_command("doctor")
    assert asked == []
    call_command("doctor", "--connect")
    assert asked == ["model"]
    shown = capsys.readouterr().out
    assert "asking: model" in shown
    assert "[wrong]" in shown


@pytest.mark.parametrize(
    ("changes", "warning"),
    [
        ({"DEBUG": True}, "izzy.W001"),
        ({"IZZY_PUBLIC_URL": ""}, "izzy.W002"),
        ({"IZZY_THROTTLE": False}, "izzy.W003"),
        ({"IZZY_PUBLIC_URL": "", "IZZY_BEHIND_PROXY": True}, "izzy.W004"),
    ],
)
def test_unsafe_settings_are_warned_about_beyond_ones_own_machine(
    settings: Settings, changes: dict[str, bool | str], warning: str
) -> None:
    safe = {"DEBUG": False, "IZZY_THROTTLE": True, "IZZY_BEHIND_PROXY": False}
    for name, value in (
        safe | {"IZZY_HOST": "0.0.0.0", "IZZY_PUBLIC_URL": "https://izzy.example.org"}
    ).items():
        setattr(settings, name, value)
    assert unsafe_settings(None) == []
    for name, value in changes.items():
        setattr(settings, name, value)
    assert warning in [found.id for found in unsafe_settings(None)]


def test_a_folder_that_cannot_be_written_is_told(settings: Settings, tmp_path: Path) -> None:
    settings.IZZY_DATA_DIR = tmp_path
    assert check_data_directory().ok
    settings.IZZY_DATA_DIR = tmp_path / "missing"
    assert not check_data_directory().ok


def test_a_disk_that_is_nearly_full_is_a_warning_and_no_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_disk().ok
    monkeypatch.setattr(health, "LOW_DISK_BYTES", 10**18)
    result = check_disk()
    assert not result.ok
    assert "MB are free" in result.message
    assert check_data_directory().ok


def test_the_database_check_sees_a_missing_migration(django_assert_max_num_queries: Any) -> None:
    """Also once it has found everything in order, which it then asks in two queries."""
    assert check_database().ok
    with django_assert_max_num_queries(2):
        assert check_database().ok
    MigrationRecorder(connection).record_unapplied("core", "0001_initial")
    result = check_database()
    assert not result.ok
    assert "migrate" in result.hint
