"""A run whose process is gone does not say for long that it runs."""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.capabilities.models import Capability, Execution, Trigger
from apps.capabilities.runs.execution import capability_execute, executions_interrupt
from apps.capabilities.sandbox.base import ErrorCode, RunError, SandboxGone
from apps.core.db.pool import in_db
from apps.core.jobs import leases
from tests.waiting import until

from .making import make

Api = Callable[..., Client]


def begun(owner: User, *, held_ago: timedelta = timedelta()) -> Execution:
    """A row as a process left it that held it last so long ago."""
    capability = Capability.objects.for_user(owner.pk).filter(name="echo").first() or make(owner, "echo")
    version = capability.current
    assert version is not None
    return Execution.objects.create(
        user=owner,
        capability=capability,
        version=version.number,
        trigger=Trigger.PAGE,
        runner=leases.PROCESS,
        lease_until=timezone.now() + leases.LEASE - held_ago,
    )


LONG = timedelta(seconds=16)


def test_its_page_says_that_it_was_interrupted_and_what_to_do(
    alice: User, sign_in: Callable[[User], Client]
) -> None:
    client = sign_in(alice)
    lost, goes_on = begun(alice, held_ago=LONG), begun(alice)
    page = client.get(f"/capabilities/echo/runs/{lost.pk}/").content.decode()
    assert "Interrupted" in page
    assert (
        "Izzy was stopped, or went down, while this was running: there is no result. Run it again."
        in page
    )
    assert "Running" in client.get(f"/capabilities/echo/runs/{goes_on.pk}/").content.decode()
    for address in ("/capabilities/echo/runs/", "/capabilities/echo/"):
        begun(alice, held_ago=LONG)
        page = client.get(address).content.decode()
        assert page.count('badge-accent">Running') == 1, address
        assert "Interrupted" in page


def test_over_rest_it_has_failed(alice: User, api: Api) -> None:
    lost = begun(alice, held_ago=LONG)
    (row,) = api(alice).get("/api/v1/capabilities/echo/executions/").json()["results"]
    assert (row["id"], row["state"], row["error"]["code"]) == (str(lost.pk), "failed", "interrupted")
    assert row["finished_at"]


def test_looking_ends_nobody_elses_and_the_sweep_all(alice: User, bob: User, api: Api) -> None:
    rows = [begun(alice, held_ago=LONG), begun(bob, held_ago=LONG), begun(bob)]
    api(alice).get("/api/v1/capabilities/echo/executions/")
    states = [Execution.objects.unscoped().get(pk=row.pk).state for row in rows]
    assert states == ["failed", "running", "running"]
    executions_interrupt()
    states = [Execution.objects.unscoped().get(pk=row.pk).state for row in rows]
    assert states == ["failed", "failed", "running"]


def test_it_is_not_the_tools_fault(alice: User) -> None:
    lost = begun(alice, held_ago=LONG)
    executions_interrupt()
    capability = Capability.objects.for_user(alice.pk).get(pk=lost.capability_id)
    assert (capability.runs, capability.failures_in_row) == (0, 0)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("real_sandbox")
async def test_a_run_that_takes_long_is_held(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "EXTEND_SECONDS", 0.05)
    await in_db(
        make,
        alice,
        name="slow",
        main="import time\ndef run(args):\n    time.sleep(1000)\n",
        input_schema={"type": "object"},
    )
    call = asyncio.ensure_future(capability_execute(user_id=alice.pk, name="slow", args={}))
    held: set[Any] = set()

    async def is_held_again_and_again() -> bool:
        held.update(
            await in_db(
                lambda: list(Execution.objects.for_user(alice).values_list("lease_until", flat=True))
            )
        )
        return len(held) > 3

    await until(is_held_again_and_again)
    await in_db(executions_interrupt)
    row = await in_db(lambda: Execution.objects.for_user(alice).get())
    assert row.state == "running"
    assert row.lease_until is not None
    assert row.lease_until >= max(held)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (SandboxGone(RunError(ErrorCode.OUT_OF_MEMORY, "It used more than 512 MB.")), "out_of_memory"),
        (OSError(28, "No space left on device"), "sandbox_failed"),
    ],
)
async def test_whatever_goes_wrong_around_a_run_ends_its_row(
    alice: User, monkeypatch: pytest.MonkeyPatch, problem: Exception, code: str
) -> None:
    class Broken:
        name = "broken"

        async def create(self, spec: Any, *, progress: Any = None) -> Any:
            raise problem

    monkeypatch.setattr("apps.capabilities.runs.execution.current_backend", Broken)
    monkeypatch.setattr("apps.capabilities.sandbox.running.current_backend", Broken)
    await in_db(make, alice, "echo", input_schema={"type": "object"})
    try:
        await capability_execute(user_id=alice.pk, name="echo", args={})
    except OSError:
        assert code == "sandbox_failed"
    row = await in_db(Execution.objects.for_user(alice.pk).get)
    assert (row.state, row.error_code) == ("failed", code)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("stopped", [1, 3])
async def test_a_run_that_is_stopped_while_it_is_prepared_does_not_say_that_it_runs(
    alice: User, monkeypatch: pytest.MonkeyPatch, stopped: int
) -> None:
    """A database that is busy makes that moment as long as a writer takes."""
    begins, goes_on = threading.Event(), threading.Event()

    class Slow:
        name = "slow"

        def __init__(self) -> None:
            begins.set()
            assert goes_on.wait(60)

    monkeypatch.setattr("apps.capabilities.runs.execution.current_backend", Slow)
    await in_db(make, alice, "echo", input_schema={"type": "object"})
    call = asyncio.create_task(capability_execute(user_id=alice.pk, name="echo", args={}))
    assert await asyncio.to_thread(begins.wait, 60)
    for _ in range(stopped):  # as by a page that is left while the server ends
        call.cancel()
        await asyncio.sleep(0.01)
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await call
    row = await in_db(Execution.objects.for_user(alice.pk).get)
    assert (row.state, row.error_code) == ("failed", "cancelled")
