"""The budget of reading by itself, and its cost."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import User
from apps.agent.models import ModelCall
from apps.core.db.pool import in_db
from apps.core.health import checks, run_check
from apps.memory.capture import leases
from apps.memory.capture.reader import windows_read
from apps.memory.capture.selectors import capture_figures
from apps.memory.models import CaptureWindow
from tests.memory.capturing import LINZ, add, captured, notes, read, said, status, windows
from tests.peers.anthropic_server import AnthropicServer
from tests.peers.capture_model import CaptureModel

pytestmark = pytest.mark.django_db(transaction=True)


async def test_when_the_days_tokens_are_spent_windows_wait_for_tomorrow(
    alice: User, bob: User, peer: AnthropicServer, settings: Settings
) -> None:
    settings.IZZY_CAPTURE_TOKENS = 5000
    peer.fallback = CaptureModel(LINZ)
    await in_db(
        lambda: ModelCall.objects.create(user=alice, purpose="extraction", model="m", endpoint="custom", input_tokens=4000, output_tokens=1000)
    )  # fmt: skip
    await in_db(add, alice, [said("I live in Linz.")])
    await in_db(add, bob, [said("I live in Linz.")])
    await windows_read()
    assert await notes(alice) == []
    assert await notes(bob) == ["The user lives in Linz."]
    now = await status(alice)
    assert (now.spent_today, now.budget, now.reason) == (5000, 5000, "budget_spent")
    assert "It goes on tomorrow" in now.waiting_sentence
    assert await in_db(leases.users_due, timezone.now()) == []
    await in_db(ModelCall.objects.for_user(alice).update, created_at=timezone.now() - timedelta(days=1))
    tomorrow = timezone.now() + timedelta(days=1)
    assert await in_db(leases.users_due, tomorrow) == [alice.pk]
    assert (await read(alice, any_time=True)).added == 1


async def test_what_chat_costs_does_not_count(
    alice: User, peer: AnthropicServer, settings: Settings
) -> None:
    settings.IZZY_CAPTURE_TOKENS = 1000
    peer.fallback = CaptureModel(LINZ)
    await in_db(
        lambda: ModelCall.objects.create(
            user=alice, purpose="chat", model="m", endpoint="custom", input_tokens=9000
        )
    )
    assert (await captured(alice, said("I live in Linz."))).added == 1


async def test_figures_say_what_it_brought_and_cost(
    alice: User, bob: User, peer: AnthropicServer
) -> None:
    peer.fallback = CaptureModel(LINZ)
    await captured(alice, said("I live in Linz."))
    await captured(alice, said("Lovely weather."))
    figures = await in_db(capture_figures, alice.pk)
    assert (figures["windows"], figures["gated"], figures["passed"], figures["memories"]) == (2, 2, 1, 1)
    rows = await in_db(lambda: list(ModelCall.objects.for_user(alice)))
    assert figures["tokens"] == sum(row.input_tokens + row.output_tokens for row in rows) > 0
    assert figures["tokens_per_memory"] == figures["tokens"]
    (first, _) = await windows(alice)
    assert 0 < first.used_tokens < figures["tokens"]
    assert (await in_db(capture_figures, bob.pk))["tokens"] == 0


async def test_doctor_says_that_the_days_tokens_are_spent(
    alice: User, bob: User, peer: AnthropicServer, settings: Settings
) -> None:
    """Only of those of whom something waits."""
    settings.IZZY_CAPTURE_TOKENS = 5000
    (check,) = [check for check in checks() if check.name == "capture"]
    for user in (alice, bob):
        spent = ModelCall(user=user, purpose="gate", model="m", endpoint="custom", input_tokens=5000)
        await in_db(spent.save)
    assert (await in_db(run_check, check)).ok
    await in_db(add, alice, [said("I live in Linz.")])
    result = await in_db(run_check, check)
    assert (
        result.message
        == "1 part of conversations waits to be read: a user has spent the day's tokens for it."
    )
    assert "IZZY_CAPTURE_TOKENS" in result.hint
    await in_db(ModelCall.objects.for_user(alice).update, created_at=timezone.now() - timedelta(days=2))
    assert (await in_db(run_check, check)).ok


async def test_doctor_says_what_could_not_be_read(alice: User, peer: AnthropicServer) -> None:
    (check,) = [check for check in checks() if check.name == "capture"]
    await in_db(add, alice, [said("I live in Linz.")])
    await in_db(CaptureWindow.objects.for_user(alice).update, state="gave_up")
    assert (await in_db(run_check, check)).message.startswith(
        "1 part of conversations could not be read"
    )
