"""`manage.py demo`: a year of an invented person, put in and taken out again."""

import io
from typing import Any

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command

from apps.accounts.models import User
from apps.agent.models import ModelCall
from apps.capabilities.models import Capability, Execution
from apps.chat.conversations.services import conversation_change
from apps.chat.models import Conversation
from apps.core.integrity import checks
from apps.core.models import InstanceState
from apps.memory.files.services import file_write
from apps.memory.models import DecayCycle, Memory, MemoryEdge, MemoryFile, MemoryRevision
from apps.memory.notes.changes import memory_update
from apps.memory.notes.creation import memory_create
from apps.memory.notes.joining import edge_create
from apps.search.selectors import search
from tests.conftest import make_user

pytestmark = pytest.mark.django_db(transaction=True)


def demo(*arguments: str) -> str:
    out = io.StringIO()
    call_command("demo", *arguments, stdout=out)
    return out.getvalue()


def wrong(user: User) -> list[str]:
    return [f"{name}: {finding.message}" for name, check in checks() for finding in check.find(user.pk)]


def rows(user: User) -> dict[str, int]:
    """How many rows of every model the user has."""
    owned = [model for model in apps.get_models() if any(f.name == "user" for f in model._meta.fields)]
    return {model._meta.label: model._base_manager.filter(user=user).count() for model in owned}


def note(user: User, words: str) -> Memory:
    return Memory.objects.for_user(user).get(content__contains=words)


def test_it_comes_whole_fits_and_goes_without_a_trace(alice: User) -> None:
    own = memory_create(user_id=alice.pk, content="I keep bees")
    other = make_user("other")
    before = rows(alice)
    assert "81 memories" in demo(alice.username)
    assert wrong(alice) == []
    notes = Memory.objects.for_user(alice)
    assert {*notes.values_list("status", flat=True)} == {"active", "pending", "superseded", "archived"}
    assert {*notes.values_list("trust", flat=True)} == {"user", "assistant", "untrusted"}
    assert notes.exclude(occasions=[]).count() > 40
    assert MemoryEdge.objects.for_user(alice).filter(relation="contradicts").count() == 2
    assert MemoryRevision.objects.for_user(alice).exists()
    assert MemoryFile.objects.for_user(alice).count() == 4
    assert {*Capability.objects.for_user(alice).values_list("status", flat=True)} == {"active"}
    assert {*Execution.objects.for_user(alice).values_list("state", flat=True)} == {"ok", "failed"}
    found = search(alice.pk, "Which putty for the window frames?", top_k=5)
    assert any("putty" in hit.text for hit in found)
    assert not any(rows(other)[label] for label in ("memory.Memory", "chat.Conversation"))
    demo(alice.username, "--remove")
    assert wrong(alice) == []
    traces = {
        "memory.DecayCycle": 0,
        "search.Tombstone": 0,
    }  # a clock at 0, and what search forgets by itself
    assert rows(alice) | traces == before | traces
    assert note(alice, "bees").pk == own.pk
    assert not ModelCall.objects.for_user(alice).exists()
    assert not InstanceState.objects.filter(key__startswith="demo:").exists()


def test_it_tells_everybody_the_same(alice: User) -> None:
    other = make_user("other")
    demo(alice.username)
    demo(other.username)
    first, second = (
        list(
            Memory.objects.for_user(each)
            .order_by("created_at", "content")
            .values_list("content", "kind")
        )
        for each in (alice, other)
    )
    assert first == second


def test_what_was_changed_since_stays_and_is_named(alice: User) -> None:
    demo(alice.username)
    changed = note(alice, "greyhound")
    memory_update(user_id=alice.pk, memory_id=changed.pk, content="Pepper likes thunder now")
    own = memory_create(user_id=alice.pk, content="My own plan")
    linked = note(alice, "rye bread")
    edge_create(user_id=alice.pk, source_id=own.pk, target_id=linked.pk, relation="related")
    talk = Conversation.objects.for_user(alice).get(title="Pepper")
    conversation_change(user_id=alice.pk, conversation_id=talk.pk, title="My dog")
    file_write(user_id=alice.pk, path="/memories/travel/oslo.md", text="By bicycle")
    said = demo(alice.username, "--remove")
    for kept in ("Pepper likes thunder now", "rye bread", "My dog", "/memories/travel/oslo.md"):
        assert kept in said
    assert {*Memory.objects.for_user(alice).values_list("pk", flat=True)} == {
        changed.pk,
        own.pk,
        linked.pk,
    }
    assert wrong(alice) == []
    assert "79 memories" in demo(alice.username)
    assert wrong(alice) == []


def test_with_changed_it_takes_those_too(alice: User) -> None:
    demo(alice.username)
    memory_update(
        user_id=alice.pk, memory_id=note(alice, "greyhound").pk, content="Pepper likes thunder now"
    )
    assert "Kept" not in demo(alice.username, "--remove", "--changed")
    assert not Memory.objects.with_deleted(alice.pk).exists()
    assert DecayCycle.objects.get(user=alice).cycle == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nobody"], "There is no user nobody."),
        (["eve", "--remove"], "There is no demo in this account."),
        (["eve", "--changed"], "--changed goes with --remove."),
    ],
)
def test_it_refuses_what_it_cannot_do(arguments: list[str], why: str) -> None:
    make_user("eve")
    with pytest.raises(CommandError, match=why):
        demo(*arguments)


def test_it_is_refused_a_second_time(alice: User) -> None:
    demo(alice.username)
    before: Any = rows(alice)
    with pytest.raises(CommandError, match="there already"):
        demo(alice.username)
    assert rows(alice) == before
