"""Notifications learn what has just come to its end."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.builder.models import Build
from apps.capabilities.catalog.versions import capability_create
from apps.chat.done import done_lately
from apps.chat.models import Conversation, Turn
from tests.capabilities.making import draft

pytestmark = pytest.mark.django_db


def turn(user: User, *, seconds: int, ago: int = 1, state: str = "done") -> Turn:
    talk = Conversation.objects.create(user=user, title="Bees")
    ended = timezone.now() - timedelta(seconds=ago)
    return Turn.objects.create(
        user=user,
        conversation=talk,
        state=state,
        started_at=ended - timedelta(seconds=seconds),
        ended_at=ended,
    )


def test_long_answers_that_have_just_ended_are_told(alice: User, bob: User, client: Client) -> None:
    long = turn(alice, seconds=60)
    turn(alice, seconds=3)
    turn(alice, seconds=60, ago=600)
    [told] = done_lately(alice.pk)
    assert told == {
        "id": str(long.pk), "title": "Izzy has answered", "text": "Bees", "url": f"/c/{long.conversation_id}/",
    }  # fmt: skip
    assert done_lately(bob.pk) == []
    client.force_login(alice)
    assert client.get("/news/?done").json()["done"] == [told]
    assert "done" not in client.get("/news/").json()


@pytest.mark.parametrize(
    ("state", "titles"),
    [
        ("failed", ["Izzy could not answer"]),
        ("interrupted", ["Izzy could not answer"]),
        ("stopped", []),
    ],
)
def test_a_turn_without_an_answer_is_not_told_as_one(alice: User, state: str, titles: list[str]) -> None:
    turn(alice, seconds=60, state=state)
    assert [told["title"] for told in done_lately(alice.pk)] == titles


def test_builds_that_have_just_ended_are_told(alice: User, bob: User) -> None:
    tool = capability_create(user_id=alice.pk, name="dice_roller", draft=draft())
    build = Build.objects.create(
        user=alice, capability=tool, name="dice_roller", state="done", ended_at=timezone.now()
    )
    [told] = done_lately(alice.pk)
    assert (told["title"], told["url"]) == ("A build is done", f"/builds/{build.pk}/")
    assert told["text"].startswith("dice roller: ")
    assert done_lately(bob.pk) == []
