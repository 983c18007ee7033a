"""Several readers, and the command."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import User
from apps.core.db.pool import in_db
from apps.core.jobs import fair
from apps.core.jobs.leases import LEASE_END
from apps.core.jobs.worker import Background
from apps.memory.capture import leases, reader
from apps.memory.capture.reader import read_due, windows_read
from apps.memory.models import CaptureLease, CaptureWindow, Memory
from tests.memory.capturing import LINZ, add, notes, read, said, windows
from tests.peers.anthropic_server import AnthropicServer, Reply
from tests.peers.capture_model import CaptureModel
from tests.waiting import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)

# --- Several readers --------------------------------------------------------------------------------------------------


async def test_a_users_windows_are_read_by_one_process_at_a_time(
    alice: User, peer: AnthropicServer
) -> None:
    await in_db(add, alice, [said("I live in Linz.")])
    await in_db(CaptureLease.objects.create, user=alice, runner="another", lease_until=LEASE_END)
    assert (await read(alice)).windows == 0
    assert await in_db(leases.users_due, timezone.now()) == []
    past = timezone.now() - timedelta(seconds=1)
    await in_db(CaptureLease.objects.filter(user_id=alice.pk).update, lease_until=past)
    peer.fallback = CaptureModel(LINZ)
    assert (await read(alice)).added == 1


async def test_who_has_lost_the_lease_writes_nothing(
    alice: User, peer: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await in_db(add, alice, [said("I live in Linz.")])
    model = CaptureModel(LINZ)
    original = leases.gate_store

    def stolen(*args: Any, **kwargs: Any) -> bool:
        kept = original(*args, **kwargs)
        CaptureLease.objects.filter(user_id=alice.pk).update(runner="another")
        return kept

    monkeypatch.setattr(leases, "gate_store", stolen)
    peer.fallback = model
    await read(alice)
    assert await notes(alice) == []
    (window,) = await windows(alice)
    assert window.state == "waiting"


async def test_the_workers_thread_reads_what_is_due(alice: User, peer: AnthropicServer) -> None:
    peer.fallback = CaptureModel(LINZ)
    await in_db(add, alice, [said("I live in Linz.")])
    reader = Background("reading", read_due)
    reader.start()
    thread = reader._thread
    assert thread is not None
    await sync_to_async(thread.join, thread_sensitive=False)(PATIENCE)
    assert await notes(alice) == ["The user lives in Linz."]


async def test_who_has_waited_longest_is_read_first(alice: User, bob: User) -> None:
    """However many others there are whom the database would name first."""
    for user, minutes in ((alice, 1), (bob, 5)):
        await in_db(add, user, [said("I live in Linz.")])
        due = timezone.now() - timedelta(minutes=minutes)
        await in_db(CaptureWindow.objects.for_user(user).update, due_at=due)
    assert await in_db(lambda: leases.users_due(timezone.now(), limit=1)) == [bob.pk]


# --- The command ------------------------------------------------------------------------------------------------------


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("extract", *arguments, stdout=out)
    return out.getvalue()


def test_extract_says_what_came_of_it(alice: User, bob: User, settings: Settings) -> None:
    add(alice, [said("I live in Linz.")], at_once=False)
    add(bob, [said("I live in Linz.")])
    with AnthropicServer.in_thread(fallback=CaptureModel(LINZ)) as server:
        settings.ANTHROPIC_BASE_URL = server.url
        assert "1 part of conversations waits." in run()
        assert Memory.objects.for_user(bob).count() == 1
        assert Memory.objects.for_user(alice).count() == 0
        said_so = run("--user", "alice", "--now")
    assert Memory.objects.for_user(alice).count() == 1
    assert "new memories" in said_so
    assert "0 parts of conversations wait" in said_so


def test_extract_without_a_model_says_what_to_set(alice: User) -> None:
    add(alice, [said("I live in Linz.")])
    assert "1 part of conversations waits: no model is connected. Set ANTHROPIC_API_KEY" in run()


def test_extract_retries_what_was_given_up(alice: User, settings: Settings) -> None:
    add(alice, [said("I live in Linz.")])
    CaptureWindow.objects.for_user(alice).update(state="gave_up", attempts=5)
    with AnthropicServer.in_thread(fallback=CaptureModel(LINZ)) as server:
        settings.ANTHROPIC_BASE_URL = server.url
        assert "1 given up before" in run("--retry")
    assert Memory.objects.for_user(alice).count() == 1


def test_extract_knows_its_users(db: None) -> None:
    with pytest.raises(CommandError, match="nobody"):
        run("--user", "nobody")


async def test_who_has_much_to_be_read_does_not_keep_others_waiting(
    alice: User, bob: User, peer: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair, "AT_ONCE", 1)
    monkeypatch.setattr(reader, "IN_A_ROW", 2)
    order: list[str] = []
    model = CaptureModel(LINZ)

    def answer(request: dict[str, Any]) -> Reply:
        order.append("bob" if "bob's" in json.dumps(request) else "alice")
        return model(request)

    peer.fallback = answer
    for number in range(8):
        await in_db(add, alice, [said(f"Nothing much, {number}.")])
    await in_db(add, bob, [said("Nothing of bob's.")])
    assert (await windows_read()).windows == 9
    assert order.index("bob") <= 4
