"""The pool of builds where its machine slept or its database fails; what a build does meanwhile is not looked at."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError
from django.utils import timezone

from apps.accounts.models import User
from apps.builder.builds.running import builds_beat
from apps.builder.builds.selectors import builds_waiting
from apps.builder.models import Build
from apps.builder.runner import pool as pools
from apps.builder.runner.pool import BuildPool
from apps.builder.workspace.context import BuildMailbox
from apps.core.db.pool import in_db
from tests.builder.test_building import built, request_build
from tests.waiting import until


class Working:
    """A job that is at work until it is cancelled."""

    begun: list[UUID]

    def __init__(self, build_id: UUID, *, client: object = None) -> None:
        self.mailbox = BuildMailbox(build_id)
        self.begun.append(build_id)

    async def run(self) -> None:
        await asyncio.Event().wait()


@pytest.fixture
async def build(alice: User, pool: BuildPool, monkeypatch: pytest.MonkeyPatch) -> Build:
    """One that the pool has at work; it claims whenever it looks."""
    monkeypatch.setattr(Working, "begun", [], raising=False)
    monkeypatch.setattr(pools, "Job", Working)
    monkeypatch.setattr(pools, "CLAIM_SECONDS", -1.0)
    build = await in_db(request_build, alice)
    await pool.look()
    assert Working.begun == [build.pk]
    return build


async def lease_ends(build: Build) -> None:
    """The machine sleeps for longer than a lease lasts, which the clock of the process does not notice."""
    over = timezone.now() - timedelta(seconds=45)
    await in_db(lambda: Build.objects.unscoped().filter(pk=build.pk).update(lease_until=over))


def at_work(pool: BuildPool, build: Build) -> bool:
    return build.pk in pool.jobs


async def test_after_a_sleep_a_build_goes_on_once(
    build: Build, pool: BuildPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    await pool.look()  # its lease was extended just now
    await lease_ends(build)
    await pool.look()
    assert Working.begun == [build.pk]
    monkeypatch.setattr(pools, "BEAT_SECONDS", -1.0)
    await pool.look()
    held = await built(build)
    assert at_work(pool, build)
    assert (held.runner, held.attempt) == (pool.runner, 1)
    assert held.lease_until is not None
    assert held.lease_until > timezone.now()


async def test_a_build_that_another_process_took_meanwhile_stops_here(
    build: Build, pool: BuildPool
) -> None:
    await lease_ends(build)
    other = BuildPool(runner="another")
    await other.look()
    assert Working.begun == [build.pk] * 2
    await pool.look()
    await until(lambda: not at_work(pool, build))
    assert (await built(build)).runner == "another"
    assert at_work(other, build)
    other.stop()
    await other.run()


async def test_a_lease_that_could_not_be_extended_is_extended_before_anything_is_claimed(
    build: Build, pool: BuildPool, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    await in_db(lambda: request_build(alice, name="other_dice"))
    fails = [OperationalError("away"), OperationalError("away")]

    def beat(**options: Any) -> Any:
        if fails:
            raise fails.pop()
        return builds_beat(**options)

    monkeypatch.setattr(pools, "builds_beat", beat)
    for left in (1, 0):
        await pool.look()
        assert (len(fails), Working.begun) == (left, [build.pk])
    await pool.look()
    assert len(Working.begun) == 2


@pytest.mark.parametrize("error", [OperationalError("away"), ValueError("a row that nobody expected")])
async def test_upkeep_that_fails_is_logged_and_goes_on(
    build: Build,
    pool: BuildPool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    fails = [error]

    def beat(**options: Any) -> Any:
        if fails:
            raise fails.pop()
        return builds_beat(**options)

    monkeypatch.setattr(pools, "builds_beat", beat)
    monkeypatch.setattr(pools, "BEAT_SECONDS", -1.0)
    await lease_ends(build)
    running = asyncio.ensure_future(pool.run())

    async def extended() -> bool:
        return running.done() or not await in_db(builds_waiting)

    await until(extended)
    pool.stop()
    await running
    assert "the upkeep of builds failed" in caplog.text
