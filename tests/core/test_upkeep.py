from datetime import timedelta

import pytest
from django.utils import timezone

from apps.core import health, sweeps, worker
from apps.core.health import CheckResult, register_check, run_check
from apps.core.models import InstanceState
from apps.core.sweeps import Sweep, register_sweep
from apps.core.worker import SweepThread, beat, check_worker

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "_sweeps", {})
    monkeypatch.setattr(health, "_checks", {})
    monkeypatch.setattr(worker, "close_old_connections", lambda: None)


def test_a_sweep_that_fails_is_logged_and_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
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
    assert [sweep.every for sweep in sweeps.sweeps()] == [timedelta(hours=2)]


def test_the_heartbeat_tells_a_living_worker_from_a_dead_one() -> None:
    assert not check_worker().ok
    beat()
    assert check_worker().ok
    InstanceState.objects.update(updated_at=timezone.now() - timedelta(minutes=5))
    result = check_worker()
    assert not result.ok
    assert "manage.py" in result.hint


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
