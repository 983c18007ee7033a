"""The ledger adds up calls, tokens and costs."""

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import preferences_update
from apps.agent.model.client import priced
from apps.agent.models import ModelCall, ToolCall
from apps.agent.selectors import NO_FAILURES, turn_usage
from apps.chat.audit_log.words import NOT_RUN
from apps.core.ids import uuid7

pytestmark = pytest.mark.django_db

Api = Callable[..., Client]


def a_call(user: User, *, at: datetime | None = None, **values: Any) -> ModelCall:
    call = ModelCall(
        user=user, purpose="chat", model="claude-sonnet-5-5", endpoint="custom", input_tokens=100
    )
    for name, value in values.items():
        setattr(call, name, value)
    call.save()
    if at is not None:
        ModelCall.objects.for_user(user).filter(pk=call.pk).update(created_at=at)
    return call


def test_usage_adds_up_by_day_purpose_and_model(alice: User, api: Api) -> None:
    a_call(alice, output_tokens=10, cost_usd=Decimal("0.25"))
    a_call(
        alice,
        purpose="title",
        model="claude-haiku-5-5",
        cost_usd=Decimal("0.05"),
        error_code="overloaded",
    )
    a_call(alice, model="offline", endpoint="offline", output_tokens=10)
    ToolCall.objects.create(user=alice, name="think", round=1, position=0, is_error=True)
    ToolCall.objects.create(user=alice, name="think", round=1, position=1)
    body = api(alice).get("/api/v1/usage/").json()
    assert body["total"] == {
        "calls": 2,
        "failed": 1,
        "input_tokens": 200,
        "output_tokens": 10,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "cost_usd": 0.3,
    }
    assert [(row["purpose"], row["calls"]) for row in body["by_purpose"]] == [("chat", 1), ("title", 1)]
    assert [row["model"] for row in body["by_model"]] == ["claude-haiku-5-5", "claude-sonnet-5-5"]
    assert [(row["day"], row["calls"]) for row in body["by_day"]] == [
        (timezone.now().date().isoformat(), 2)
    ]
    assert body["tools"] == [{"name": "think", "calls": 2, "failed": 1}]


def test_a_call_that_the_user_declined_or_stopped_is_no_failure_of_its_tool(
    alice: User, api: Api
) -> None:
    for position, code in enumerate(["declined", "stopped", "superseded", "timeout"]):
        ToolCall.objects.create(
            user=alice, name="think", round=1, position=position, is_error=True, error_code=code
        )
    for code in ("cancelled", "timeout", ""):
        ModelCall.objects.create(
            user=alice, purpose="chat", model="m", endpoint="custom", error_code=code
        )
    usage = api(alice).get("/api/v1/usage/").json()
    assert (usage["total"]["calls"], usage["total"]["failed"]) == (3, 1)
    tools = usage["tools"]
    assert tools == [{"name": "think", "calls": 4, "failed": 1}]
    assert set(NO_FAILURES) == set(NOT_RUN)  # as the log of a conversation has it


def test_the_period_can_be_chosen(alice: User, api: Api) -> None:
    now = timezone.now()
    a_call(alice, at=now - timedelta(days=40))
    a_call(alice, at=now - timedelta(days=20))
    client = api(alice, "read")
    assert client.get("/api/v1/usage/").json()["total"]["calls"] == 1
    since = (now - timedelta(days=60)).isoformat()
    assert client.get("/api/v1/usage/", {"since": since}).json()["total"]["calls"] == 2
    until = (now - timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%S")
    assert client.get("/api/v1/usage/", {"since": since, "until": until}).json()["total"]["calls"] == 1


def test_nobody_sees_anothers_usage(alice: User, bob: User, api: Api) -> None:
    a_call(alice)
    ToolCall.objects.create(user=alice, name="think", round=1, position=0)
    body = api(bob).get("/api/v1/usage/").json()
    assert body["total"]["calls"] == 0
    assert body["tools"] == []


def test_usage_needs_a_user(client: Client) -> None:
    response = client.get("/api/v1/usage/")
    assert response.status_code == 401
    assert sorted(response.json()) == ["code", "extra", "message"]


@pytest.mark.parametrize(
    "query",
    [
        "since=yesterday",
        "until=2026-13-45T00:00:00Z",
        "since=%00",
        "since=2026-11-02T00:00:00Z&until=2026-11-01T00:00:00Z",
        "until=0001-01-01T00:00:00Z&since=%ff",
        "since=" + "9" * 5000,
    ],
)
def test_a_wrong_period_is_refused(alice: User, api: Api, query: str) -> None:
    response = api(alice).get(f"/api/v1/usage/?{query}")
    assert response.status_code == 400
    assert response.json()["code"] == "invalid_input"


@pytest.mark.parametrize(
    "until",
    [
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_times_at_the_ends_of_the_calendar_are_no_crash(alice: User, api: Api, until: str) -> None:
    assert api(alice).get("/api/v1/usage/", {"until": until}).status_code in (200, 400)


def test_a_turns_usage_is_that_of_its_calls(alice: User, bob: User) -> None:
    turn = uuid7()
    a_call(alice, turn_id=turn, cost_usd=Decimal("0.5"))
    a_call(alice, turn_id=turn, output_tokens=7)
    a_call(alice, turn_id=uuid7())
    usage = turn_usage(user_id=alice.pk, turn_id=turn)
    assert (usage.calls, usage.input_tokens, usage.output_tokens, usage.cost_usd) == (2, 200, 7, 0.5)
    assert turn_usage(user_id=bob.pk, turn_id=turn).calls == 0


def test_prices_are_those_of_the_longest_matching_name(settings: Any) -> None:
    settings.IZZY_MODEL_PRICES = {"claude": (1, 1, 1, 1), "claude-big": (10, 20, 30, 40)}
    tokens = {
        "input_tokens": 1,
        "output_tokens": 1,
        "cache_read_input_tokens": 1,
        "cache_creation_input_tokens": 1,
    }
    assert priced(tokens, "claude-big-2").cost_usd == pytest.approx(100e-6)
    assert priced(tokens, "claude-small").cost_usd == pytest.approx(4e-6)
    assert priced(tokens, "llama").cost_usd == 0


def test_the_admin_lists_calls_without_reading_what_is_heavy(
    admin: User, sign_in: Callable[[User], Client]
) -> None:
    ToolCall.objects.create(user=admin, name="think", round=1, position=0, result="x" * 100)
    a_call(admin)
    browser = sign_in(admin)
    for name in ("modelcall", "toolcall"):
        assert browser.get(f"/admin/agent/{name}/").status_code == 200
        assert browser.get(f"/admin/agent/{name}/?q=think").status_code == 200
    call = ToolCall.objects.for_user(admin).get()
    assert b"x" * 100 in browser.get(f"/admin/agent/toolcall/{call.pk}/change/").content


def test_the_page_adds_up_what_belongs_together_and_names_it(
    alice: User, bob: User, sign_in: Callable[[User], Client]
) -> None:
    a_call(alice, purpose="gate", output_tokens=10, cost_usd=Decimal("0.20"))
    a_call(alice, purpose="extraction", output_tokens=30, cost_usd=Decimal("1.05"))
    a_call(bob, output_tokens=77_000)
    ToolCall.objects.create(user=alice, name="memory_search", round=1, position=0)
    ToolCall.objects.create(user=alice, name="cap_dice_roller", round=1, position=1, is_error=True)
    page = sign_in(alice).get("/usage/").content.decode()
    assert page.count("Remembering by itself") == 1
    assert "$1.25" in page
    assert "Search your memories" in page
    assert ">Run dice roller<" in page
    assert "memory_search" not in page
    assert "77,000" not in page


def test_the_page_shows_the_days_that_were_chosen(
    alice: User, sign_in: Callable[[User], Client]
) -> None:
    a_call(alice, at=timezone.now() - timedelta(days=20), output_tokens=4_321)
    client = sign_in(alice)
    assert "4,321" in client.get("/usage/").content.decode()
    assert "Nothing used in these 7 days" in client.get("/usage/?days=7").content.decode()
    assert "4,321" in client.get("/usage/?days=1000000").content.decode()


def test_days_are_those_of_whoever_looks(alice: User, sign_in: Callable[[User], Client]) -> None:
    """Half past eleven in the evening of New York is the next day in Greenwich."""
    preferences_update(user_id=alice.pk, time_zone="America/New_York")
    here = ZoneInfo("America/New_York")
    late = (timezone.now().astimezone(here) - timedelta(days=3)).replace(hour=23, minute=30)
    a_call(alice, at=late, cost_usd=Decimal("0.50"))
    page = sign_in(alice).get("/usage/").content.decode()
    assert f"most on {late:%-d %B}: $0.50" in page
