"""One lease for all four: who runs a conversation, a build, a capability, and who reads a user's words."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import OperationalError
from django.utils import timezone

from apps.accounts.models import User
from apps.builder.models import Build
from apps.capabilities.catalog.versions import capability_begin
from apps.capabilities.models import Execution
from apps.chat.conversations.services import conversation_create
from apps.chat.models import Conversation
from apps.core.db.pool import in_db
from apps.core.integrity.machine import leases_clear, leases_find
from apps.core.jobs import leases
from apps.core.jobs.leases import LEASE, PROCESS, Leased, LeaseLost
from apps.memory.models import CaptureLease
from tests.capabilities.making import make
from tests.waiting import until


def a_conversation(user: User) -> UUID:
    return conversation_create(user_id=user.pk).pk


def a_build(user: User) -> UUID:
    schema = {"type": "object"}
    begun = capability_begin(
        user_id=user.pk, name="dice", description="Rolls dice.", input_schema=schema
    )
    return Build.objects.create(user=user, capability=begun, name="dice", description="Rolls dice.").pk


def windows(user: User) -> UUID:
    CaptureLease.objects.create(user=user)
    return user.pk


def a_run(user: User) -> UUID:
    made = make(user, "echo")
    assert made.current is not None
    return Execution.objects.create(user=user, capability=made, version=made.current.number).pk


Kind = tuple[type[Leased], UUID]
KINDS: dict[str, tuple[type[Leased], Callable[[User], Any]]] = {
    "conversation": (Conversation, a_conversation),
    "build": (Build, a_build),
    "capture": (CaptureLease, windows),
    "run": (Execution, a_run),
}


@pytest.fixture(params=KINDS)
def row(request: pytest.FixtureRequest, alice: User) -> Kind:
    model, made = KINDS[request.param]
    return model, made(alice)


def change(kind: Kind, **values: Any) -> None:
    model, key = kind
    model._base_manager.filter(pk=key).update(**values)


def read(kind: Kind) -> Leased:
    model, key = kind
    return model._base_manager.get(pk=key)


def is_free(kind: Kind) -> bool:
    model, key = kind
    return model._base_manager.filter(model.lease_free(), pk=key).exists()


def test_one_process_at_a_time_holds_a_row(row: Kind) -> None:
    model, key = row
    assert is_free(row)
    assert model.lease_take(key, "one")
    assert not is_free(row)
    assert not model.lease_take(key, "two")
    assert model.lease_take(key, "one")
    assert (model.lease_held(key, "one"), model.lease_held(key, "two")) == (True, False)
    with pytest.raises(LeaseLost):
        model.lease_extend(key, "two")


def test_it_ends_fifteen_seconds_after_it_was_taken_or_extended(row: Kind) -> None:
    model, key = row
    for hold in (model.lease_take, model.lease_extend):
        before = timezone.now() - timedelta(milliseconds=1)  # SQLite's clock counts those
        hold(key, "one")
        held_until = read(row).lease_until
        assert held_until is not None
        assert before + LEASE <= held_until <= timezone.now() + LEASE


def test_a_row_that_was_given_back_is_free_at_once(row: Kind) -> None:
    model, key = row
    model.lease_take(key, "one")
    model.lease_release(key, "two")
    assert not is_free(row)
    model.lease_release(key, "one")
    assert model.lease_take(key, "two")


def test_a_process_that_ends_gives_back_all_that_it_holds(row: Kind) -> None:
    model, key = row
    model.lease_take(key, "one")
    model.lease_release(None, "two")
    assert not is_free(row)
    model.lease_release(None, "one")
    assert is_free(row)


def test_a_lease_that_ran_out_goes_to_the_next(row: Kind) -> None:
    model, key = row
    model.lease_take(key, "one")
    change(row, lease_until=timezone.now() - timedelta(milliseconds=10))
    assert model.lease_take(key, "two")
    with pytest.raises(LeaseLost):
        model.lease_extend(key, "one")


def test_a_lease_from_before_the_clock_was_set_back_holds_nobody_up(row: Kind) -> None:
    model, key = row
    model.lease_take(key, "one")
    change(row, lease_until=timezone.now() + timedelta(hours=3))
    assert model.lease_take(key, "two")


def test_a_row_without_an_end_is_free(row: Kind) -> None:
    change(row, runner="one", lease_until=None)
    assert is_free(row)


@pytest.mark.django_db(transaction=True)
async def test_it_is_extended_for_as_long_as_the_work_takes(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "EXTEND_SECONDS", 0.02)
    key = await in_db(windows, alice)
    seen = set()

    async def extended_again_and_again() -> bool:
        seen.add((await in_db(read, (CaptureLease, key))).lease_until)
        return len(seen) > 3

    await in_db(CaptureLease.lease_take, key)
    async with CaptureLease.lease_kept(key):
        await until(extended_again_and_again)
        await in_db(CaptureLease.lease_take, key)
    newest = (await in_db(read, (CaptureLease, key))).lease_until
    await asyncio.sleep(0.1)
    assert (await in_db(read, (CaptureLease, key))).lease_until == newest


@pytest.mark.django_db(transaction=True)
async def test_work_that_lost_its_lease_goes_on_to_its_next_write(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "EXTEND_SECONDS", 0.02)
    key = await in_db(windows, alice)
    await in_db(CaptureLease.lease_take, key, "another")
    async with CaptureLease.lease_kept(key):
        await asyncio.sleep(0.1)
        with pytest.raises(LeaseLost):
            await in_db(CaptureLease.lease_extend, key)
    assert await in_db(CaptureLease.lease_held, key, "another")


@pytest.mark.django_db(transaction=True)
async def test_a_busy_database_is_asked_again(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "EXTEND_SECONDS", 0.02)
    key = await in_db(windows, alice)
    asked = []

    def extend(*given: Any) -> None:
        asked.append(given)
        if len(asked) == 1:
            raise OperationalError("database is locked")

    monkeypatch.setattr(CaptureLease, "lease_extend", extend)

    async def asked_twice() -> bool:
        return len(asked) > 1

    async with CaptureLease.lease_kept(key):
        await until(asked_twice)


def test_this_process_has_a_name_that_fits() -> None:
    assert 0 < len(PROCESS) <= 64


@pytest.mark.parametrize(("minutes", "kept"), [(0.5, True), (2, False), (60, False)])
def test_the_sweep_gives_back_what_a_dead_process_held_long_before_that_counts_as_a_fault(
    row: Kind, minutes: float, kept: bool
) -> None:
    model, key = row
    rows = model._base_manager.filter(pk=key)
    rows.update(runner="gone-1-ab", lease_until=timezone.now() - timedelta(minutes=minutes))
    assert bool(list(leases_find(None))) is (minutes > 10)
    leases_clear()
    assert rows.filter(runner="gone-1-ab").exists() is kept
    assert not list(leases_find(None))
